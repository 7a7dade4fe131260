"""How a log grows: drafts are checked against the lifecycle, numbered, dated, chained and folded, in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from keepstep.log.chain import Stored, digest_after, digest_of, genesis
from keepstep.log.fold import Folding
from keepstep.log.ledger import LedgerEntry, ledger_changes
from keepstep.log.records import Record, encode_head


class Draft(NamedTuple):
    """A record that has no number yet, and its body."""

    record: Record
    body: bytes | None = None


class Grown(NamedTuple):
    """What was added to a log."""

    records: list[Stored]
    ledger: list[LedgerEntry]


def grow(
    row: Folding, run_id: str, drafts: Sequence[Draft], *, now_us: int, batch: bytes, epoch: int, holder: bool
) -> Grown:
    """Add drafts to the log that folds to `row`, which moves on. Raises `NotAllowed` with `row` half moved."""
    stored: list[Stored] = []
    ledger: list[LedgerEntry] = []
    digest = row.digest or genesis(run_id)
    at_us = max(now_us, row.at_us)
    first: bytes | None = batch
    for record, body in drafts:
        cell = row.admit(record, run_id, holder=holder)
        record = replace(
            record,
            seq=row.seq + 1,
            at_us=at_us,
            epoch=record.epoch or epoch,
            batch=first,
            body=None if body is None else digest_of(body),
            body_bytes=0 if body is None else len(body),
        )
        first = None
        head = encode_head(record)
        digest = digest_after(digest, head)
        row.apply(record, cell, digest)
        stored.append(Stored(record.seq, head, digest, body))
        ledger += ledger_changes(record)
    return Grown(stored, ledger)
