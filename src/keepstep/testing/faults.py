"""A store that fails, loses its replies, or dies at the operation it is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeVar

from keepstep.errors import StoreFailed, StoreFull
from keepstep.log.chain import Stored
from keepstep.log.ledger import LedgerEntry
from keepstep.runtime.inline import drive
from keepstep.store.base import Append, Committed, Entry, Outcome, Page, Query, Renewal, Store, View, Weight

T = TypeVar("T")
When = Literal["before", "after"]
How = Literal["crash", "fail", "full", "kill"]


class SimulatedCrash(BaseException):
    """The process would be dead here. Catch it in the test, and open the store anew."""


class FaultyStore:
    """Any blocking store, with one fault.

    `at` counts operations from 1; `when` says whether the fault comes before the operation or after it (then it was
    done, but nobody is told). `how`: "crash" raises SimulatedCrash now and at every later operation, as a dead process
    does nothing more; "fail" raises StoreFailed once; "full" raises StoreFull once; "kill" kills this process.
    Heartbeats are not counted, because they come when they like.
    """

    blocking = True

    def __init__(self, store: Store, at: int = 0, when: When = "before", how: How = "crash") -> None:
        self.store = store
        self.url = store.url
        self.read_only = store.read_only
        self.at = at
        self.when = when
        self.how = how
        self.operations = 0
        """How many there have been."""
        self.dead = False

    async def _do(self, operation: Coroutine[Any, Any, T]) -> T:
        if self.dead:
            operation.close()
            raise SimulatedCrash
        self.operations += 1
        due = self.operations == self.at
        if due and self.when == "before":
            operation.close()
            self._strike()
        result = await operation
        if due and self.when == "after":
            self._strike()
        return result

    def _strike(self) -> None:
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "fail":
            raise StoreFailed(f"Operation {self.at} failed, because the test wants it {self.when} it is done.")
        if self.how == "full":
            raise StoreFull("No space left, because the test wants it.")
        self.die()
        raise SimulatedCrash

    def die(self) -> None:
        """Be a dead process from here on: its connections and locks go, what it had claimed stays claimed."""
        if not self.dead:
            self.dead = True
            drive(self.store.close())

    # --- the operations ------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """See `Store.open`; not counted."""
        await self.store.open()

    async def commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        """See `Store.commit`."""
        return await self._do(self.store.commit(batch))

    async def view(self, run_id: str) -> View:
        """See `Store.view`."""
        return await self._do(self.store.view(run_id))

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
        """See `Store.records`."""
        return await self._do(
            self.store.records(run_id, after=after, until=until, bodies=bodies, newest_first=newest_first, limit=limit)
        )

    async def pick(self, run_id: str, seqs: Sequence[int]) -> list[Stored]:
        """See `Store.pick`."""
        return await self._do(self.store.pick(run_id, seqs))

    async def effects(self, run_id: str, keys: Sequence[bytes] | None = None) -> list[LedgerEntry]:
        """See `Store.effects`."""
        return await self._do(self.store.effects(run_id, keys))

    async def rows(self, query: Query, cursor: str | None, limit: int) -> Page:
        """See `Store.rows`."""
        return await self._do(self.store.rows(query, cursor, limit))

    async def claim(
        self, workflows: Sequence[str] | None, limit: int, decide: Callable[[View], Append | None]
    ) -> list[Committed]:
        """See `Store.claim`."""
        return await self._do(self.store.claim(workflows, limit, decide))

    async def delete(self, run_id: str, decide: Callable[[View], None]) -> bool:
        """See `Store.delete`."""
        return await self._do(self.store.delete(run_id, decide))

    async def enlist(self, owner: str, seconds: float) -> None:
        """See `Store.enlist`."""
        await self._do(self.store.enlist(owner, seconds))

    async def renew(self, owner: str, seconds: float) -> Renewal:
        """See `Store.renew`; not counted, but a dead process has no heartbeat."""
        if self.dead:
            raise StoreFailed("The process is dead.")
        return await self.store.renew(owner, seconds)

    async def retire(self, owner: str) -> None:
        """See `Store.retire`."""
        await self._do(self.store.retire(owner))

    async def changes(self, seen: int | None, seconds: float) -> int:
        """See `Store.changes`."""
        return await self._do(self.store.changes(seen, seconds))

    async def now(self) -> int:
        """See `Store.now`."""
        return await self._do(self.store.now())

    async def size(self, run_id: str | None) -> Weight:
        """See `Store.size`."""
        return await self._do(self.store.size(run_id))

    async def backup(self, target: str) -> None:
        """See `Store.backup`."""
        await self._do(self.store.backup(target))

    def after_fork(self) -> None:
        """See `Store.after_fork`."""
        self.store.after_fork()

    async def close(self) -> None:
        """See `Store.close`; not counted."""
        if not self.dead:
            await self.store.close()
