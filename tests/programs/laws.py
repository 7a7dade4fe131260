"""What holds of every log, whatever happened: the laws that the records of one run obey."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import keepstep
from keepstep.log.ledger import LedgerEntry, ledger_change
from keepstep.log.records import (
    Answered,
    AnyRecord,
    Began,
    Expired,
    Inherited,
    Raised,
    Settled,
    Took,
    Undone,
    decode_head,
)  # fmt: skip
from tests.handles import act

NEW = frozenset(("saved", "began", "asked", "slept", "took"))
"""What is not written any more once a run is to be cancelled."""


def check(store: keepstep.Store, run_id: str) -> None:
    """The log is whole, the row and the ledger are what it adds up to, and it obeys the laws."""
    found = store.verify(run_id)
    assert found.ok, f"{run_id}: {found.damage}"
    stored = act(store, lambda engine: engine.store.records(run_id))
    records = [decode_head(one.head) for one in stored]
    ledger = act(store, lambda engine: engine.store.effects(run_id, None))
    assert sorted(ledger) == sorted(_ledger_of(records))
    _nothing_begins_twice(run_id, records)
    _nothing_new_after_a_request_to_stop(run_id, records)
    _an_approval_is_spent_once(run_id, records)
    _used_once(run_id, (one.asked for one in records if isinstance(one, Answered | Expired)), "gate")
    _used_once(run_id, (one.sent for one in records if isinstance(one, Took) and one.sent), "message")


def has_begun_to_go_back(store: keepstep.Store, run_id: str) -> bool:
    """Whether a rollback is under way that was cut off."""
    row: Any = act(store, lambda engine: engine.store.view(run_id)).row
    return row is not None and bool(row.undoing)


def _ledger_of(records: Iterable[AnyRecord]) -> list[LedgerEntry]:
    ledger: dict[bytes, LedgerEntry] = {}
    for record in records:
        change = ledger_change(record)
        if change is not None:
            ledger[change.key] = change
    return list(ledger.values())


def _nothing_begins_twice(run_id: str, records: Sequence[AnyRecord]) -> None:
    """Between two beginnings of an effect somebody knew that it had not happened, or it may be repeated.

    What a fork inherited in doubt has begun. What it knows to have happened in its parent is the judge's business.
    """
    free: dict[bytes, bool] = {}
    begun: set[bytes] = set()
    for one in records:
        match one:
            case Began():
                assert free.get(one.key, True) or one.idempotent, f"{run_id}: {one} began twice"
                free[one.key] = False
                begun.add(one.key)
            case Inherited():
                free[one.key] = one.outcome == "returned"
            case Raised() | Undone():
                free[one.key] = True
            case Settled():
                free[one.key] = not one.happened or one.key not in begun
            case _:
                continue


def _nothing_new_after_a_request_to_stop(run_id: str, records: Sequence[AnyRecord]) -> None:
    is_asked = False
    for one in records:
        assert not (is_asked and one.kind in NEW), f"{run_id}: {one} after a request to cancel"
        is_asked = one.kind == "cancel_requested" or (is_asked and one.kind not in ("cancelled", "reopened"))


def _an_approval_is_spent_once(run_id: str, records: Sequence[AnyRecord]) -> None:
    """Only what may be repeated is repeated under one yes."""
    spent: dict[int, Began] = {}
    for one in records:
        if isinstance(one, Began) and one.approval:
            before = spent.setdefault(one.approval, one)
            assert before is one or (before.key == one.key and one.idempotent), f"{run_id}: {one} was not approved"


def _used_once(run_id: str, seqs: Iterable[int], what: str) -> None:
    found = list(seqs)
    assert len(set(found)) == len(found), f"{run_id}: a {what} was used twice"
