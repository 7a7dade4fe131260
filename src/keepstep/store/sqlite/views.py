"""One run as a decision may see it, read in the transaction that decides."""

from __future__ import annotations

from collections.abc import Callable

from keepstep.log.fold import Fold
from keepstep.store.base import Holder, View
from keepstep.store.owner_locks import OwnerLocks
from keepstep.store.sealed_rows import read_row
from keepstep.store.sqlite.driver import Cursor
from keepstep.store.sqlite.statements import sql

Stands = Callable[[str, int | None], bool]
"""Whether an owner stands, given its id and until when its lease runs."""


class Standing:
    """Tells which owners stand now; each one's lock is looked at once."""

    def __init__(self, locks: OwnerLocks, now_us: int) -> None:
        self._locks = locks
        self._now_us = now_us
        self._known: dict[str, bool] = {}

    def __call__(self, owner: str, until_us: int | None) -> bool:
        if until_us is None or until_us <= self._now_us:
            return False
        if owner not in self._known:
            self._known[owner] = self._locks.held(owner) is not False
        return self._known[owner]

    @property
    def free(self) -> int:
        """How many locks were found free."""
        return sum(not stands for stands in self._known.values())


def holder_of(row: Fold, until_us: int | None, stands: Stands) -> Holder | None:
    """The owner that a row names, and whether it stands."""
    if row.owner is None:
        return None
    return Holder(row.owner, until_us or 0, stands(row.owner, until_us))


def read_view(cursor: Cursor, run_id: str, stands: Stands, now_us: int) -> View:
    """One run, now."""
    found = cursor.execute(sql("read_run"), (run_id,)).fetchone()
    if found is None:
        buried = cursor.execute(sql("read_tombstone"), (run_id,)).fetchone()
        return View(run_id, None, None, buried or (0, 0), now_us)
    _, seq, digest, sealed, until_us = found
    row = read_row(run_id, seq, digest, sealed)
    return View(run_id, row, holder_of(row, until_us, stands), (0, 0), now_us)
