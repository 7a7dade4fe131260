"""From rows of the database to runs and records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from keepstep.log.chain import DIGEST_BYTES, Stored
from keepstep.log.fold import Fold
from keepstep.store.base import Holder, View
from keepstep.store.plan import Kept
from keepstep.store.postgres.port import Values
from keepstep.store.sealed_rows import read_row

SEQ_MAX = (1 << 63) - 1


class Seen(NamedTuple):
    """What there is under a run's id."""

    run_id: str
    found: tuple[int, bytes, bytes] | None
    """seq, digest and sealed row; None when there is no run."""
    until_us: int | None
    """Until when the lease of its holder runs; None when the owner is not known."""
    buried: tuple[int, int]
    free: bool
    """Nobody else is creating it just now."""
    now_us: int

    def kept(self) -> Kept:
        """The run and its tombstone; raises `Damaged`."""
        return Kept(self.row(), self.buried)

    def row(self) -> Fold | None:
        """The run's row; raises `Damaged`."""
        return None if self.found is None else read_row(self.run_id, *self.found)

    def view(self) -> View:
        """The run as a decision may see it."""
        row = self.row()
        return View(self.run_id, row, holder_of(row, self.until_us, self.now_us), self.buried, self.now_us)


def seen_of(values: Values, now_us: int = 0) -> Seen:
    """What a statement that reads runs says of one; `now_us` is the least that the time may be."""
    id_bytes, seq, digest, sealed, until_us, incarnation, epoch, free, at_us = values
    found = None if seq is None else (seq, digest, sealed)
    buried = (0, 0) if incarnation is None or found is not None else (incarnation, epoch)
    return Seen(id_bytes.decode(), found, until_us, buried, free is not False, max(at_us, now_us))


def holder_of(row: Fold | None, until_us: int | None, now_us: int) -> Holder | None:
    """The owner that a row names, and whether it stands."""
    if row is None or row.owner is None:
        return None
    return Holder(row.owner, until_us or 0, stands=until_us is not None and until_us > now_us)


def stored(values: Values) -> Stored:
    """A record, from its columns."""
    seq, head, body = values
    return Stored(seq, head[DIGEST_BYTES:], head[:DIGEST_BYTES], body)


def by_id(seen: list[Seen]) -> Mapping[str, Seen]:
    """The same, to look up."""
    return {one.run_id: one for one in seen}
