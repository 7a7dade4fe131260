"""The lifecycle: every pair of kind and status, allowed and refused, and who may write it."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from keepstep.errors import NotAllowed
from keepstep.log.fold import Folding, Wait
from keepstep.log.lifecycle import ABSENT, BY_ANYBODY, ENDED, STATUSES, TABLE, allowed_in, leads_to
from keepstep.log.records import KINDS
from tests.log.record_examples import EXAMPLES, KEY

ALIVE = ("ready", "running", "paused", "sleeping")
EVERYWHERE = STATUSES


def stays(*statuses: str) -> dict[str, str]:
    return dict.fromkeys(statuses, "=")


WRITTEN_OUT: dict[str, dict[str, str]] = {
    "opened": {ABSENT: "ready"},
    "saved": stays(*ALIVE),
    "finished": {"running": "finished"},
    "failed": {"running": "failed"},
    "cancel_requested": stays(*ALIVE),
    "cancelled": dict.fromkeys((*ALIVE, "failed"), "cancelled"),
    "reopened": dict.fromkeys(("failed", "finished", "cancelled"), "ready"),
    "rolled_back": stays("running"),
    "tagged": stays(*EVERYWHERE),
    "noted": stays(*EVERYWHERE),
    "pruned": stays(*EVERYWHERE),
    "claimed": {"ready": "running", "running": "=", "paused": "running", "sleeping": "running"},
    "released": {"running": "rests"},
    "began": stays(*ALIVE),
    "returned": stays(*ALIVE),
    "raised": stays("running"),
    "doubted": stays("running"),
    "settled": {**stays(*EVERYWHERE), "paused": "wakes"},
    "witnessed": stays(*EVERYWHERE),
    "undo_began": stays("running"),
    "undone": stays("running"),
    "undo_failed": stays("running"),
    "inherited": stays("ready"),
    "asked": {"ready": "paused", "running": "=", "paused": "=", "sleeping": "paused"},
    "answered": {**stays("ready", "running", "sleeping", "failed"), "paused": "wakes"},
    "expired": {**stays("ready", "running", "sleeping"), "paused": "wakes"},
    "slept": stays("running"),
    "sent": {**stays("ready", "running", "failed"), "paused": "wakes", "sleeping": "wakes"},
    "took": stays("running"),
}
"""The table once more, said otherwise: both have to be changed to change the life of a run."""

WRITTEN_BY_ANYBODY = {
    "cancel_requested", "tagged", "noted", "pruned", "claimed", "released", "settled", "witnessed", "answered",
    "expired", "sent",
}  # fmt: skip

PAIRS = list(product(sorted(KINDS), (ABSENT, *STATUSES)))


def row_in(status: str) -> Folding:
    """A run in this status, waiting where one waits."""
    row = Folding(status=status, workflow="w", seq=6, digest=b"D" * 16, epoch=2, changed_us=1, created_us=1, at_us=1)
    if status == "running":
        row.owner = "owner-1"
    if status == "paused":
        row.waits = [Wait("gate", "g-1", 5), Wait("message", "paid", 6)]
    if status == "sleeping":
        row.waits = [Wait("message", "paid", 5)]
    return row


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_table_has_a_row_for_every_kind_and_no_other(kind: str):
    assert [line.split()[0] for line in TABLE.strip().splitlines()[1:]].count(kind) == 1
    assert set(WRITTEN_OUT) == set(KINDS)


@pytest.mark.parametrize(("kind", "status"), PAIRS)
def test_every_record_is_allowed_or_refused_as_the_table_says(kind: str, status: str):
    expected = WRITTEN_OUT[kind].get(status)
    assert leads_to(kind, status) == expected
    row = row_in(status)
    if expected is None:
        with pytest.raises(NotAllowed, match=f"'r' is {status}; '{kind}' needs it to be") as caught:
            row.admit(EXAMPLES[kind], "r", holder=True)
        assert caught.value.run_id == "r"
        for one in allowed_in(kind):
            assert one in str(caught.value)
    else:
        assert row.admit(EXAMPLES[kind], "r", holder=True) == expected


@pytest.mark.parametrize(("kind", "status"), [pair for pair in PAIRS if pair[1] in WRITTEN_OUT[pair[0]]])
def test_every_allowed_record_leads_where_the_table_says(kind: str, status: str):
    row = row_in(status)
    cell = row.admit(EXAMPLES[kind], "r", holder=True)
    record = replace(EXAMPLES[kind], at_us=99)
    row.apply(record, cell, b"E" * 16)
    expected = {"=": status, "wakes": "ready", "rests": "ready"}.get(cell, cell)
    assert row.status == expected
    assert row.changed_us == (99 if expected != status else 1)
    assert (row.seq, row.digest, row.at_us) == (record.seq, b"E" * 16, 99)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_only_the_holder_writes_a_held_run_except_what_anybody_may(kind: str):
    row = row_in("running")
    if leads_to(kind, "running") is None:
        return
    row.admit(EXAMPLES[kind], "r", holder=True)
    if kind in WRITTEN_BY_ANYBODY:
        row.admit(EXAMPLES[kind], "r", holder=False)
    else:
        with pytest.raises(NotAllowed, match="held by owner-1"):
            row.admit(EXAMPLES[kind], "r", holder=False)
    assert (kind in BY_ANYBODY) == (kind in WRITTEN_BY_ANYBODY)


@pytest.mark.parametrize(("kind", "status"), [pair for pair in PAIRS if pair[1] != "running"])
def test_who_writes_makes_no_difference_while_nobody_holds_the_run(kind: str, status: str):
    row = row_in(status)
    if status in WRITTEN_OUT[kind]:
        assert row.admit(EXAMPLES[kind], "r", holder=False) == WRITTEN_OUT[kind][status]
    else:
        with pytest.raises(NotAllowed):
            row.admit(EXAMPLES[kind], "r", holder=False)


def test_a_refusal_changes_nothing():
    for kind, status in PAIRS:
        row, same = row_in(status), row_in(status)
        try:
            row.admit(EXAMPLES[kind], "r", holder=False)
        except NotAllowed:
            assert row == same


def test_every_status_can_be_reached_and_left():
    reached = {to for moves in WRITTEN_OUT.values() for to in moves.values()} - {"=", "rests", "wakes"}
    assert reached | {"sleeping"} == set(STATUSES)  # `rests` alone leads to sleep
    for status in STATUSES:
        assert any(moves.get(status, "=") not in ("=", status) for moves in WRITTEN_OUT.values())


def test_a_finished_run_takes_in_remarks_and_evidence_only():
    takes_in = {kind for kind in KINDS if leads_to(kind, "finished")}
    assert takes_in == {"reopened", "tagged", "noted", "pruned", "settled", "witnessed"}
    assert {kind for kind in KINDS if leads_to(kind, "cancelled")} == takes_in
    assert {"failed", "finished", "cancelled"} == ENDED


def test_a_key_that_is_in_doubt_stays_so_when_another_is_settled():
    row = row_in("paused")
    row.doubts = {KEY: 3, b"other": 4}
    cell = row.admit(EXAMPLES["settled"], "r", holder=False)
    row.apply(EXAMPLES["settled"], cell, b"E" * 16)
    assert row.doubts == {b"other": 4}
    assert row.status == "paused"
