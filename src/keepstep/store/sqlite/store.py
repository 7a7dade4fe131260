"""The store in one SQLite file: the protocol's methods, each one transaction."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

from keepstep.errors import CannotOpen, ReadOnly, WrongUse
from keepstep.log.chain import Stored
from keepstep.log.ledger import LedgerEntry
from keepstep.store.base import (
    Append,
    Committed,
    Decision,
    Entry,
    Outcome,
    Page,
    Query,
    Renewal,
    View,
    Weight,
)  # fmt: skip
from keepstep.store.cursors import write_cursor
from keepstep.store.owner_locks import OwnerLocks
from keepstep.store.places import check_place, create_private
from keepstep.store.sqlite.backup import copy_store
from keepstep.store.sqlite.connect import fingerprint
from keepstep.store.sqlite.connections import Connections, Work
from keepstep.store.sqlite.driver import Cursor
from keepstep.store.sqlite.forking import watch_forks
from keepstep.store.sqlite.line import Line
from keepstep.store.sqlite.owners import clear_owners, erase_owner, put_owner, renew_owner
from keepstep.store.sqlite.reading import (
    Span,
    read_effect,
    read_effects,
    read_listed,
    read_one,
    read_picked,
    read_records,
    weigh,
)
from keepstep.store.sqlite.schema import is_store, prepare
from keepstep.store.sqlite.search import Wanted, find, wanted
from keepstep.store.sqlite.views import Standing, read_view
from keepstep.store.sqlite.writing import Writing, erase

POLL_SECONDS_FIRST = 0.005
POLL_SECONDS_MOST = 0.05
CROWD = 16
"""So many runs written at once make a crowd."""
CLAIM_PAGE = 64
"""How many due runs a claim looks at together."""
CLAIM_LOOKS_MAX = 10_000
"""A claim that passed over so many runs gives up: it keeps all other writers waiting."""

T = TypeVar("T")

DUE = Query(due=True, order="changed", newest_first=False)


class Clock(Protocol):
    """Tells the time and waits."""

    def now_us(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...


class SqliteStore:
    """Runs live in one SQLite file, which many threads and processes of one machine share."""

    blocking = True

    def __init__(self, path: str, clock: Clock, *, read_only: bool = False, vfs: str | None = None) -> None:
        self._file = Path(path.removeprefix("sqlite:")).absolute()
        self.path = str(self._file)
        self.url = f"sqlite:{self.path}"
        self.read_only = read_only
        self._clock = clock
        self._last_us = 0
        self._opening = threading.Lock()
        self._connections = Connections(self.path, vfs, read_only=read_only)
        self._locks = OwnerLocks(Path(f"{self.path}-owners"))
        self._salt = int.from_bytes(os.urandom(2))
        """Tells the counts of this process's watching connection from those of others."""
        watch_forks(self)

    # --- opening and closing -------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._open()

    def _open(self) -> None:
        with self._opening:
            if self._connections.opened:
                return
            check_place(self._file, is_file=True, must_exist=self.read_only)
            if self.read_only:
                self._connections.reading(self._check_filled)
            else:
                create_private(self._file)
                # Checked before anything is put beside it: it may be somebody else's file.
                self._connections.prepare(
                    lambda connection: prepare(connection, self.path),
                    lambda connection: is_store(connection, self.path, read_only=False),
                )
            self._connections.opened = True

    def _check_filled(self, cursor: Cursor) -> None:
        if not is_store(cursor.connection, self.path, read_only=True):
            raise CannotOpen(f"Cannot open {self.path} for reading: it is empty. Open it for writing once.")

    def rest(self) -> None:
        """Before a fork: close every connection, and let nobody in until `wake`."""
        self._connections.rest()

    def wake(self) -> None:
        """After a fork, in the parent: go on."""
        self._connections.wake()

    def after_fork(self) -> None:
        self._opening = threading.Lock()
        self._salt = int.from_bytes(os.urandom(2))
        self._connections.forget()
        self._locks.forget()

    async def close(self) -> None:
        self._connections.close()
        self._locks.close()

    # --- runs ----------------------------------------------------------------------------------------------------

    async def commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        urgent = any(isinstance(entry, Decision) or entry.urgent for entry in batch)
        with self._writing(urgent=urgent, crowd=len(batch) >= CROWD) as cursor:
            writing = self._write(cursor)
            return [writing.take(entry) for entry in batch]

    async def view(self, run_id: str) -> View:
        now_us = self._now_us()
        standing = Standing(self._locks, now_us)
        return self._read_owners(standing, lambda cursor: read_view(cursor, run_id, standing, now_us))

    async def records(
        self,
        run_id: str,
        *,
        after: int = 0,
        until: int | None = None,
        bodies: bool = True,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Stored]:
        span = Span(after, until, bodies, newest_first, limit)
        return self._read(lambda cursor: read_records(cursor, run_id, span))

    async def pick(self, run_id: str, seqs: Sequence[int]) -> list[Stored]:
        if len(seqs) == 1:
            return self._read(lambda cursor: read_one(cursor, run_id, seqs[0]), is_one_statement=True)
        return self._read(lambda cursor: read_picked(cursor, run_id, seqs))

    async def effects(self, run_id: str, keys: Sequence[bytes] | None = None) -> list[LedgerEntry]:
        if keys is not None and len(keys) == 1:
            return self._read(lambda cursor: read_effect(cursor, run_id, keys[0]), is_one_statement=True)
        return self._read(lambda cursor: read_effects(cursor, run_id, keys))

    async def rows(self, query: Query, cursor: str | None, limit: int) -> Page:
        now_us = self._now_us()
        standing = Standing(self._locks, now_us)
        asked = wanted(query, cursor, now_us, standing)

        def read(cursor: Cursor) -> Page:
            hits = find(cursor, asked, limit)
            rows = [read_listed(cursor, key, standing) for _, _, key in hits[:limit]]
            more = len(hits) > limit > 0
            return Page(rows, write_cursor(query, *hits[limit - 1][:2]) if more else None)

        return self._read_owners(standing, read)

    async def claim(
        self, workflows: Sequence[str] | None, limit: int, decide: Callable[[View], Append | None]
    ) -> list[Committed]:
        self._check_writable()
        now_us = self._now_us()
        some = None if workflows is None else list(dict.fromkeys(workflows))
        asked = Wanted(DUE, some, None, now_us, Standing(self._locks, now_us))
        # Workers ask all the time, mostly in vain, and asking keeps nobody waiting.
        if limit < 1 or not self._read(lambda cursor: find(cursor, asked, 0)):
            return []
        with self._writing() as cursor:
            return list(islice(_claims(cursor, self._write(cursor), asked, decide), limit))

    async def delete(self, run_id: str, decide: Callable[[View], None]) -> bool:
        with self._writing() as cursor:
            view = self._write(cursor).view(run_id)
            if view.row is None:
                return False
            decide(view)
            erase(cursor, view)
            return True

    # --- owners --------------------------------------------------------------------------------------------------

    async def enlist(self, owner: str, seconds: float) -> None:
        self._check_writable()
        self._locks.take(owner)
        with self._beat() as cursor:
            now_us = self._now_us()
            put_owner(cursor, owner, now_us, now_us + round(seconds * 1e6))
            staying = clear_owners(cursor, self._locks, now_us)
        self._locks.clear(staying)

    async def renew(self, owner: str, seconds: float) -> Renewal:
        with self._beat() as cursor:
            now_us = self._now_us()
            return renew_owner(cursor, owner, now_us, now_us + round(seconds * 1e6))

    async def retire(self, owner: str) -> None:
        with self._beat() as cursor:
            erase_owner(cursor, owner)
            staying = clear_owners(cursor, self._locks, self._now_us())
        self._locks.clear(staying)
        self._locks.drop(owner)

    # --- the whole -----------------------------------------------------------------------------------------------

    async def changes(self, seen: int | None, seconds: float) -> int:
        self._open()
        waited, pause = 0.0, POLL_SECONDS_FIRST
        count = self._count()
        while count == seen and waited < seconds:
            pause = min(pause, seconds - waited)
            self._clock.sleep(pause)
            waited, pause = waited + pause, min(pause * 1.5, POLL_SECONDS_MOST)
            try:
                count = self._count()
            except WrongUse:  # the store was closed meanwhile, which is no change
                break
        return count

    async def now(self) -> int:
        return self._now_us()

    async def size(self, run_id: str | None) -> Weight:
        return self._read(lambda cursor: weigh(cursor, self.path, run_id))

    async def backup(self, target: str) -> None:
        self._read(lambda cursor: copy_store(cursor.connection, Path(target).absolute()))

    # --- inside --------------------------------------------------------------------------------------------------

    def _writing(
        self, line: Line | None = None, *, urgent: bool = True, crowd: bool = False
    ) -> AbstractContextManager[Cursor]:
        self._check_writable()
        if not self._connections.opened:
            self._open()
        return self._connections.writing(line, urgent=urgent, crowd=crowd)

    def _beat(self) -> AbstractContextManager[Cursor]:
        """A transaction about leases. They end with the power anyway, so no disk is waited for."""
        return self._writing(self._connections.heart, urgent=False)

    def _read(self, work: Work[T], *, is_one_statement: bool = False) -> T:
        if not self._connections.opened:
            self._open()
        return self._connections.reading(work, is_one_statement=is_one_statement)

    def _read_owners(self, standing: Standing, work: Work[T]) -> T:
        """Read what depends on who stands.

        A lock that is found free may have been held when the transaction began, and its owner may have written since,
        and left in good order. So it is read again, with the locks that were free before.
        """
        while True:
            free = standing.free
            found = self._read(work)
            if standing.free == free:
                return found

    def _write(self, cursor: Cursor) -> Writing:
        now_us = self._now_us()
        return Writing(cursor, Standing(self._locks, now_us), now_us)

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnly(f"{self.path} was opened for reading. Open it without read_only=True to write.")

    def _now_us(self) -> int:
        self._last_us = max(self._last_us, self._clock.now_us())
        return self._last_us

    def _count(self) -> int:
        """A number that is another one once anybody has committed; small enough for a float to hold it exactly."""
        state = fingerprint(self.path) if self.read_only else None
        if state is not None:
            return int.from_bytes(blake2b(repr(state).encode(), digest_size=6).digest())
        made, version = self._connections.watched()
        return (self._salt + made & 0xFFFF) << 32 | version & 0xFFFFFFFF


def _claims(
    cursor: Cursor, writing: Writing, asked: Wanted, decide: Callable[[View], Append | None]
) -> Iterator[Committed]:
    """Decide the due runs one after another, oldest change first."""
    known: set[str] = set()
    while len(known) < CLAIM_LOOKS_MAX:
        hits = find(cursor, asked, CLAIM_PAGE)
        for _, run_id, _ in hits[:CLAIM_PAGE]:
            # A run claimed for an owner without a lease is due again, further on.
            if run_id in known:
                continue
            known.add(run_id)
            outcome = writing.take(Decision(run_id, decide))
            if isinstance(outcome, Committed) and outcome.append is not None:
                yield outcome
        if len(hits) <= CLAIM_PAGE:
            return
        asked = asked._replace(start=hits[CLAIM_PAGE - 1][:2])
