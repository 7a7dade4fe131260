"""The fold: what the records of a log add up to, computed anew or kept along the way, always the same."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstep.errors import NotAllowed
from keepstep.log.chain import Stored
from keepstep.log.fold import Fold, Folding, Wait, decode_fold, encode_fold, fold, thaw
from keepstep.log.grow import Draft, grow
from keepstep.log.lifecycle import leads_to
from keepstep.log.records import (
    KINDS,
    Answered,
    Asked,
    Began,
    Cancelled,
    CancelRequested,
    Claimed,
    Doubted,
    Expired,
    Failed,
    Finished,
    Inherited,
    Noted,
    Opened,
    Pruned,
    Raised,
    Record,
    Released,
    Reopened,
    Returned,
    RolledBack,
    Saved,
    Sent,
    Settled,
    Slept,
    Tagged,
    Took,
    UndoBegan,
    UndoFailed,
    Undone,
    Witnessed,
    decode_head,
)  # fmt: skip


def refold(stored: list[Stored]) -> Fold:
    return fold("r", [(decode_head(one.head), one.digest) for one in stored])


class Log:
    """A log that grows record by record."""

    def __init__(self, *records: Record) -> None:
        self.row = Folding()
        self.stored: list[Stored] = []
        self.now_us = 1000
        for one in records:
            self.add(one)

    def add(self, record: Record) -> Folding:
        self.now_us += 10
        grown = grow(self.row, "r", [Draft(record)], now_us=self.now_us, batch=b"b", epoch=1, holder=True)
        self.stored += grown.records
        return self.row


def claimed_log(*records: Record) -> Log:
    return Log(Opened(workflow="w"), Claimed(owner="owner-1", epoch=1), *records)


# --- any log ---------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from([b"key 1", b"key 2", b"key 3"])
NAMES = st.sampled_from(["a", "b"])
WHEN = st.none() | st.integers(0, 5000)
FIELDS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "opened": {"workflow": NAMES, "incarnation": st.integers(1, 3), "parent_run": st.none() | NAMES},
    "saved": {"step": st.integers(1, 99), "next": st.none() | NAMES, "label": st.none() | NAMES},
    "rolled_back": {"to": st.integers(1, 9), "to_step": st.integers(1, 9), "line": st.integers(2, 9)},
    "tagged": {"tags": st.dictionaries(NAMES, st.none() | st.integers(0, 3) | NAMES)},
    "noted": {"namespace": st.sampled_from(["progress", "import", "retry"])},
    "claimed": {
        "owner": NAMES,
        "reason": st.sampled_from(["entered", "worker", "took_over"]),
        "epoch": st.integers(1, 9),
    },
    "released": {"reason": st.sampled_from(["left", "waits"])},
    "began": {"key": KEYS, "tool": NAMES, "once": st.booleans()},
    "inherited": {
        "key": KEYS,
        "tool": NAMES,
        "parent_seq": st.just(1),
        "outcome": st.sampled_from(["returned", "open", "doubted"]),
    },
    "asked": {"gate": NAMES, "key": KEYS, "until_us": WHEN},
    "answered": {"gate": NAMES},
    "expired": {"gate": NAMES},
    "slept": {"key": KEYS, "until_us": WHEN, "message": st.none() | NAMES},
    "sent": {"name": NAMES, "message_id": st.none() | KEYS},
} | {
    kind: {"key": KEYS}
    for kind in ("returned", "raised", "doubted", "settled", "witnessed", "undo_began", "undone", "undo_failed", "took")
}


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[Stored, Fold]]:
    """Records that are allowed one after the other, each with the row that was kept along the way."""
    log = Log()
    log.add(draw(st.builds(Opened, **FIELDS["opened"])))
    rows = [log.row.freeze()]
    for _ in range(draw(st.integers(0, 25))):
        allowed = sorted(kind for kind in KINDS if leads_to(kind, log.row.status) is not None)
        kind = draw(st.sampled_from(allowed))
        log.add(draw(st.builds(KINDS[kind], **FIELDS.get(kind, {}))))
        rows.append(log.row.freeze())
    return list(zip(log.stored, rows, strict=True))


@given(logs())
def test_folding_the_log_gives_the_row_that_was_kept_along_the_way(log: list[tuple[Stored, Fold]]):
    stored = [one for one, _ in log]
    for length, (_, row) in enumerate(log, 1):
        assert refold(stored[:length]) == row


@given(logs())
def test_a_row_is_read_as_it_was_stored(log: list[tuple[Stored, Fold]]):
    for _, row in log:
        assert decode_fold(encode_fold(row)) == row
        assert encode_fold(thaw(row)) == encode_fold(row)


@given(logs(), st.data())
def test_a_fold_can_be_continued_from_any_row(log: list[tuple[Stored, Fold]], data: st.DataObject):
    start = data.draw(st.integers(0, len(log) - 1))
    row = thaw(log[start][1])
    for one, _ in log[start + 1 :]:
        record = decode_head(one.head)
        row.apply(record, row.admit(record, "r", holder=True), one.digest)
    assert row.freeze() == log[-1][1]


@given(logs())
def test_folding_changes_nothing_that_it_reads(log: list[tuple[Stored, Fold]]):
    records = [(decode_head(one.head), one.digest) for one, _ in log]
    before = msgspec.msgpack.encode(records)
    assert fold("r", records) == fold("r", records)
    assert msgspec.msgpack.encode(records) == before


@given(logs())
def test_a_frozen_row_does_not_move_with_the_one_it_was_taken_from(log: list[tuple[Stored, Fold]]):
    row = Folding()
    frozen: list[tuple[Fold, bytes]] = []
    for one, _ in log:
        record = decode_head(one.head)
        row.apply(record, row.admit(record, "r", holder=True), one.digest)
        frozen.append((row.freeze(), encode_fold(row)))
    assert [encode_fold(one) for one, _ in frozen] == [data for _, data in frozen]


@given(logs())
def test_a_rows_invariants_hold_after_every_record(log: list[tuple[Stored, Fold]]):
    for seq, (one, row) in enumerate(log, 1):
        assert (row.seq, row.digest) == (seq, one.digest)
        assert (row.owner is None) == (row.status != "running")
        assert row.created_us <= row.changed_us <= row.at_us
        assert row.due_us is None or row.status in ("paused", "sleeping")
        assert (row.ended != 0) == (row.status in ("finished", "failed", "cancelled"))
        assert not (row.waits and row.status in ("finished", "failed", "cancelled"))


def test_a_log_that_breaks_the_rules_does_not_fold():
    log = claimed_log(Finished())
    head = Saved(step=1, seq=4)
    with pytest.raises(NotAllowed, match="is finished"):
        fold("r", [*((decode_head(one.head), one.digest) for one in log.stored), (head, b"D" * 16)])


# --- size ------------------------------------------------------------------------------------------------------------


def test_a_row_stays_small_however_long_the_log_grows():
    log = claimed_log()
    sizes: dict[int, int] = {}
    for step in range(1, 5001):
        log.add(Saved(step=step, next="plan", parent=log.row.saved, depth=log.row.depth + 1))
        log.add(Noted(namespace="progress"))
        log.add(Began(key=step.to_bytes(16, "big"), tool="charge"))
        log.add(Returned(key=step.to_bytes(16, "big"), began=log.row.seq))
        log.add(Tagged(tags={"step": step}))
        sizes[step] = len(encode_fold(log.row))
    assert max(sizes.values()) < 500
    assert max(sizes.values()) - sizes[8] < 14 * 12  # a jump for each bit of the depth, and wider numbers


# --- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_checkpoint_says_where_the_run_stands():
    row = claimed_log(Saved(step=4, next="plan", label="good", depth=1, version=3)).row
    assert (row.step, row.next, row.label, row.saved, row.version) == (4, "plan", "good", 3, 3)
    assert row.saved_us == row.at_us


def test_jumps_are_the_ancestors_reached_by_clearing_the_lowest_bits_of_the_depth():
    log = claimed_log()
    at: dict[int, tuple[int, int, int]] = {}
    for depth in range(1, 200):
        log.add(Saved(step=depth * 10, parent=log.row.saved, depth=depth))
        at[depth] = (log.row.seq, depth * 10, depth)
        expected: list[tuple[int, int, int]] = []
        ancestor = depth
        while ancestor:
            expected.insert(0, at[ancestor])
            ancestor &= ancestor - 1
        assert log.row.jumps == expected


def test_a_rollback_goes_back_to_the_jumps_of_its_checkpoint_and_begins_a_line():
    log = claimed_log(Saved(step=1, depth=1), Saved(step=2, depth=2, parent=3))
    jumps = list(log.row.jumps)
    log.add(Saved(step=3, depth=3, parent=4))
    back = RolledBack(to=4, to_step=2, line=2, next="plan", label="good", depth=2, jumps=jumps, version=2)
    row = log.add(back)
    assert (row.saved, row.step, row.depth, row.jumps) == (4, 2, 2, jumps)
    assert (row.line, row.lines, row.next, row.label, row.version) == (2, 2, "plan", "good", 2)


def test_a_run_that_is_given_up_keeps_the_question_about_that_and_forgets_the_others():
    asks = Asked(gate="g-2", key=b"d", about="deaths")
    log = claimed_log(Saved(step=1, depth=1), asked("g-1", until_us=9000), asks)
    row = log.add(Failed(reason="deaths"))
    assert ([wait.name for wait in row.waits], row.status, row.freeze().asking_us is None) == (["g-2"], "failed", False)
    assert log.add(Answered(gate="g-2", key=b"d", asked=5)).waits == []
    assert log.add(Reopened()).status == "ready"


def test_a_run_that_is_brought_back_asks_no_more():
    log = claimed_log(Saved(step=1, depth=1), Asked(gate="g-2", key=b"d", about="deaths"), Failed(reason="deaths"))
    row = log.add(Reopened())
    assert (row.waits, row.freeze().asking_us) == ([], None)


def test_a_rollback_clears_what_the_abandoned_line_waited_for():
    log = claimed_log(Saved(step=1, depth=1), asked("g-1", until_us=9000), Slept(key=b"k", until_us=9000))
    row = log.add(RolledBack(to=3, to_step=1, line=2, depth=1, jumps=[(3, 1, 1)]))
    assert (row.waits, row.freeze().due_us, row.freeze().asking_us) == ([], None, None)
    row = log.add(Released())
    assert (row.status, row.waits) == ("ready", [])


def test_a_rollback_is_under_way_from_the_first_undo_until_the_run_has_gone_back():
    log = claimed_log(Saved(step=1, depth=1), Began(key=b"k", tool="charge"), Returned(key=b"k", began=4))
    assert log.add(UndoBegan(key=b"k", began=4, to=3)).undoing == 3
    began = log.row.undoing_from
    assert began == log.row.seq
    assert log.add(UndoFailed(key=b"k", began=4)).undoing == 3
    assert (log.add(Released()).status, log.row.undoing) == ("ready", 3)
    log.add(Claimed(owner="owner-2", epoch=2, reason="rollback"))
    log.add(UndoBegan(key=b"k", began=4, attempt=2, to=3))
    assert log.add(Undone(key=b"k", began=4)).undoing == 3
    assert log.row.undoing_from == began
    row = log.add(RolledBack(to=3, to_step=1, line=2, depth=1, jumps=[(3, 1, 1)]))
    assert (row.undoing, row.undoing_from) == (0, 0)


def test_what_was_undone_is_not_in_doubt_any_more():
    log = claimed_log(Saved(step=1, depth=1), Began(key=b"k", tool="charge"), Doubted(key=b"l", began=4))
    assert log.add(Undone(key=b"l", began=4)).doubts == {}


# --- claims ----------------------------------------------------------------------------------------------------------


def test_deaths_count_takeovers_since_the_last_checkpoint():
    log = claimed_log()
    for epoch in (2, 3):
        log.add(Claimed(owner="owner-2", epoch=epoch, reason="took_over", before="owner-1"))
    assert (log.row.deaths, log.row.epoch, log.row.owner) == (2, 3, "owner-2")
    assert log.add(Saved(step=1, depth=1)).deaths == 0
    log.add(Claimed(owner="owner-3", epoch=4, reason="took_over"))
    log.add(Failed())
    assert log.add(Reopened()).deaths == 0


def test_attempts_count_failures_of_a_step_until_the_next_checkpoint():
    log = claimed_log(Noted(namespace="retry", key="pay"), Noted(namespace="progress"), Noted(namespace="retry"))
    log.add(Claimed(owner="owner-2", epoch=2, reason="took_over"))
    assert log.row.attempts == 2
    assert log.add(Saved(step=1)).attempts == 0
    log.add(Noted(namespace="retry"))
    log.add(Failed())
    assert log.add(Reopened()).attempts == 0


def test_a_checkpoint_says_which_version_of_the_flow_goes_on_from_it():
    log = Log(Opened(workflow="w", flow_version="1", flow_fingerprint=b"F"), Claimed(owner="owner-1", epoch=1))
    assert log.add(Saved(step=1, flow_version="1")).flow_fingerprint == b"F"
    assert log.add(Saved(step=2)).flow_version == "1"
    log.add(Saved(step=3, flow_version="2", flow_fingerprint=b"G"))
    assert (log.row.flow_version, log.row.flow_fingerprint) == ("2", b"G")


def test_a_rollback_goes_back_to_the_version_of_its_checkpoint():
    log = Log(Opened(workflow="w", flow_version="1", flow_fingerprint=b"F"), Claimed(owner="owner-1", epoch=1))
    log.add(Saved(step=1, flow_version="1"))
    log.add(Saved(step=2, flow_version="2", flow_fingerprint=b"G"))
    log.add(RolledBack(to=3, to_step=1, line=2, flow_version="1"))
    assert (log.row.flow_version, log.row.flow_fingerprint) == ("1", None)
    assert log.add(RolledBack(to=3, to_step=1, line=3)).flow_version == "1"


def test_a_run_changes_its_time_of_change_only_with_its_status():
    log = claimed_log()
    changed_us = log.row.changed_us
    log.add(Saved(step=1, depth=1))
    assert log.row.changed_us == changed_us
    assert log.add(Released()).changed_us == log.now_us


# --- waiting ---------------------------------------------------------------------------------------------------------


def asked(gate: str, until_us: int | None = None) -> Asked:
    return Asked(gate=gate, key=gate.encode(), until_us=until_us)


WAITS = Released(reason="waits")


def test_a_run_that_leaves_in_order_to_wait_for_an_answer_is_paused():
    row = claimed_log(asked("g-1"), WAITS).row
    asked_us = row.waits[0].at_us
    assert (row.status, row.owner) == ("paused", None)
    assert row.waits == [Wait("gate", "g-1", 3, None, "question", b"g-1", asked_us)]
    assert row.freeze().asking_us == asked_us < row.at_us


def test_a_run_that_leaves_in_order_to_wait_for_a_time_or_a_message_sleeps():
    assert claimed_log(Slept(key=b"k", until_us=9000), WAITS).row.status == "sleeping"
    assert claimed_log(Slept(key=b"k", message="paid"), WAITS).row.status == "sleeping"


def test_an_open_gate_weighs_more_than_a_time():
    assert claimed_log(Slept(key=b"k", until_us=9000), asked("g-1"), WAITS).row.status == "paused"


def test_a_run_that_simply_leaves_is_ready_whatever_it_waits_for():
    assert claimed_log(asked("g-1"), Released()).row.status == "ready"


def test_a_run_that_wants_to_wait_for_nothing_is_ready():
    assert claimed_log(WAITS).row.status == "ready"


def test_an_answer_that_came_before_the_run_left_is_not_waited_for():
    row = claimed_log(asked("g-1"), asked("g-2"), Answered(gate="g-1"), WAITS).row
    assert (row.status, row.woken) == ("ready", True)
    assert [one.name for one in row.waits] == ["g-2"]


def test_a_message_that_came_before_the_run_left_is_not_waited_for():
    assert claimed_log(Slept(key=b"k", message="paid"), Sent(name="paid"), WAITS).row.status == "ready"
    assert claimed_log(Slept(key=b"k", message="paid"), Sent(name="other"), WAITS).row.status == "sleeping"


@pytest.mark.parametrize("wake", [Answered(gate="g-1"), Expired(gate="g-1")])
def test_the_answer_or_the_expiry_of_its_gate_wakes_a_paused_run(wake: Record):
    log = claimed_log(asked("g-1"), asked("g-2"), WAITS)
    assert log.add(wake).status == "ready"
    assert [one.name for one in log.row.waits] == ["g-2"]


def test_an_answer_to_no_open_gate_wakes_nobody():
    log = claimed_log(asked("g-1"), WAITS)
    assert log.add(Answered(gate="g-9")).status == "paused"
    assert not log.row.woken


def test_a_message_wakes_only_who_waits_for_its_name():
    log = claimed_log(Slept(key=b"k", message="paid", until_us=9000), WAITS)
    assert log.add(Sent(name="other")).status == "sleeping"
    assert log.add(Sent(name="paid")).status == "ready"


def test_the_last_doubt_that_is_settled_wakes_a_paused_run():
    log = claimed_log(
        Began(key=b"k", tool="charge"), Doubted(key=b"k"), Began(key=b"l", tool="charge"), Doubted(key=b"l")
    )
    log.add(asked("doubt of k"))
    assert log.add(WAITS).status == "paused"
    assert log.add(Settled(key=b"k")).status == "paused"
    assert log.add(Settled(key=b"l")).status == "ready"


def test_a_question_put_to_a_run_at_rest_pauses_it():
    assert Log(Opened(workflow="w"), asked("g-1")).row.status == "paused"
    assert claimed_log(Slept(key=b"k", until_us=9000), WAITS, asked("g-1")).row.status == "paused"


def test_a_waiting_run_is_due_at_the_earliest_of_its_times():
    log = claimed_log(asked("g-1", 9000), asked("g-2"), Slept(key=b"k", until_us=7000))
    assert log.row.freeze().due_us is None  # it runs
    log.add(WAITS)
    assert log.row.freeze().due_us == 7000
    log.add(Answered(gate="g-1"))
    assert log.row.freeze().due_us is None  # it is ready


def test_a_run_that_waits_without_a_time_is_never_due():
    assert claimed_log(asked("g-1"), WAITS).row.freeze().due_us is None


def test_who_claims_a_waiting_run_starts_with_its_gates_only():
    log = claimed_log(asked("g-1"), Slept(key=b"k", until_us=7000), Slept(key=b"l", message="paid"), WAITS)
    row = log.add(Claimed(owner="owner-2", epoch=2))
    assert ([one.name for one in row.waits], row.woken, row.status) == (["g-1"], False, "running")


def test_a_run_that_ended_waits_for_nothing():
    for end, request in ((Finished(), 0), (Failed(), 0), (Cancelled(), 4)):
        row = claimed_log(asked("g-1"), CancelRequested(), end).row
        assert (row.waits, row.cancel, row.owner, row.ended) == ([], request, None, 5)


# --- the rest --------------------------------------------------------------------------------------------------------


def test_effects_are_open_until_their_outcome_and_memos_never_are():
    log = claimed_log(Began(key=b"k", tool="charge"), Began(key=b"m", tool="ask", once=False))
    assert log.row.open_effects == {b"k": 3}
    assert log.add(Raised(key=b"k")).open_effects == {}
    log.add(Began(key=b"k", tool="charge"))
    row = log.add(Doubted(key=b"k"))
    assert (row.open_effects, row.doubts) == ({}, {b"k": 7})
    row = log.add(Settled(key=b"k"))
    assert (row.open_effects, row.doubts) == ({}, {})


def test_what_begins_after_a_doubt_is_open_and_the_doubt_is_over():
    log = claimed_log(Began(key=b"k", tool="charge"), Doubted(key=b"k"), Doubted(key=b"l"))
    row = log.add(Began(key=b"k", tool="charge", attempt=2))
    assert (row.open_effects, row.doubts) == ({b"k": 6}, {b"l": 5})
    row = log.add(Returned(key=b"k", began=6))
    assert (row.open_effects, row.doubts) == ({}, {b"l": 5})


def test_what_begins_anew_is_open_where_it_began_last():
    log = claimed_log(Began(key=b"k", tool="charge"))
    assert log.add(Began(key=b"k", tool="charge", attempt=2)).open_effects == {b"k": 4}


def test_what_a_late_worker_tells_settles_nothing_by_itself():
    log = claimed_log(Began(key=b"k", tool="charge"), Doubted(key=b"k"))
    assert log.add(Witnessed(key=b"k", began=3, outcome="returned")).doubts == {b"k": 4}


@pytest.mark.parametrize("outcome", ["open", "doubted"])
def test_what_nobody_knows_in_the_parent_is_in_doubt_in_the_fork(outcome: str):
    inherited = Inherited(key=b"k", tool="charge", parent_seq=9, outcome=outcome)
    log = Log(Opened(workflow="w", parent_run="r-0"), inherited)
    assert (log.row.doubts, log.row.open_effects, log.row.status) == ({b"k": 2}, {}, "ready")
    assert log.add(Settled(key=b"k", began=2)).doubts == {}


def test_what_returned_in_the_parent_is_in_no_doubt_in_the_fork():
    log = Log(Opened(workflow="w"), Inherited(key=b"k", tool="charge", parent_seq=9, outcome="returned"))
    assert (log.row.doubts, log.row.open_effects) == ({}, {})


def test_an_inherited_doubt_is_over_when_the_call_begins_in_the_fork():
    log = Log(Opened(workflow="w"), Inherited(key=b"k", tool="charge", parent_seq=9, outcome="open"))
    log.add(Claimed(owner="owner-1", epoch=1))
    row = log.add(Began(key=b"k", tool="charge"))
    assert (row.open_effects, row.doubts) == ({b"k": 4}, {})


def test_inheriting_wakes_and_pauses_nobody():
    log = Log(Opened(workflow="w"))
    changed_us = log.row.changed_us
    row = log.add(Inherited(key=b"k", tool="charge", parent_seq=9, outcome="open"))
    assert (row.status, row.changed_us, row.waits, row.woken) == ("ready", changed_us, [], False)


def test_messages_are_kept_in_their_order_until_they_are_taken():
    log = claimed_log(Sent(name="a"), Sent(name="b", message_id=b"m"), Sent(name="a"))
    assert log.row.mail == [("a", 3), ("b", 4), ("a", 5)]
    assert log.add(Took(key=b"k", sent=3)).mail == [("b", 4), ("a", 5)]
    assert log.add(Took(key=b"l", sent=0)).mail == [("b", 4), ("a", 5)]  # a deadline that passed


def test_messages_outlive_claims_failures_and_what_the_run_waits_for():
    log = claimed_log(Slept(key=b"k", message="a"), WAITS, Sent(name="a"), Claimed(owner="owner-2", epoch=2), Failed())
    log.add(Sent(name="b"))
    log.add(Reopened())
    assert log.row.mail == [("a", 5), ("b", 8)]


def test_an_open_gate_is_kept_when_a_message_wakes_the_run():
    log = claimed_log(asked("g-1"), Slept(key=b"k", message="paid"), Slept(key=b"l", until_us=9000), WAITS)
    assert log.row.status == "paused"
    assert log.add(Sent(name="paid")).status == "ready"
    row = log.add(Claimed(owner="owner-2", epoch=2))
    assert [one.name for one in row.waits] == ["g-1"]
    assert log.add(WAITS).status == "paused"


def test_tags_are_set_replaced_and_taken_away():
    log = claimed_log(Tagged(tags={"a": 1, "b": "x"}), Tagged(tags={"a": 2, "b": None, "c": None}))
    assert log.row.tags == {"a": 2}


def test_only_progress_notes_are_the_runs_last_note():
    log = claimed_log(Noted(namespace="progress"), Noted(namespace="import"))
    assert log.row.note == 3


def test_the_first_of_several_requests_to_cancel_stands():
    log = claimed_log(CancelRequested(), CancelRequested())
    assert log.row.cancel == 3
    row = log.add(Cancelled())
    assert (row.status, row.cancel, row.ended) == ("cancelled", 3, 5)


def test_pruning_changes_nothing_but_the_end_of_the_log():
    log = claimed_log(Saved(step=1, depth=1))
    before = log.row.freeze()
    after = log.add(Pruned(dropped=[(3, 3)])).freeze()
    assert encode_fold(msgspec.structs.replace(after, seq=before.seq, digest=before.digest, at_us=before.at_us)) == (
        encode_fold(before)
    )


def test_the_stored_form_of_a_row_is_pinned_to_the_byte():
    row = Fold(
        status="paused", workflow="refund", incarnation=2, seq=12, digest=b"D" * 16, epoch=3, owner=None, step=9,
        next="plan", label="good", line=2, lines=2, saved=9, depth=3, jumps=[(4, 1, 2), (9, 9, 3)], version=4, deaths=1,
        parent_run="r-0", parent_seq=5, parent_step=4, flow_version="1", flow_fingerprint=b"F", tags={"vip": True},
        created_us=1, changed_us=2, saved_us=3, at_us=4, note=5, ended=0, cancel=6,
        waits=[Wait("gate", "g-1", 7, 8, "approval", b"K", 6)], woken=True, open_effects={b"k": 10}, doubts={b"l": 11},
        mail=[("paid", 9)], undoing=4, undoing_from=5, attempts=2,
    )  # fmt: skip
    assert encode_fold(row).hex() == (
        "dc0026a6706175736564a6726566756e64020cc4104444444444444444444444444444444403c009a4706c616ea4676f6f64"
        "020209039293040102930909030401a3722d300504a131c4014681a3766970c3010203040500069197a467617465a3672d31"
        "0708a8617070726f76616cc4014b06c381c4016b0a81c4016c0b9192a47061696409040502"
    )


def test_a_row_from_before_a_field_was_added_reads_with_its_default():
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(encode_fold(Folding(status="ready", workflow="w")))[:2])
    assert decode_fold(older) == Fold(status="ready", workflow="w")
