"""A blocking store behind an event loop: commits on one thread of its own, reads on a few others."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from keepstep.errors import StoreFailed
from keepstep.log.chain import Stored
from keepstep.log.ledger import LedgerEntry
from keepstep.runtime.inline import drive
from keepstep.store.base import (
    Append,
    Committed,
    Entry,
    Outcome,
    Page,
    Query,
    Renewal,
    Store,
    View,
    Weight,
)  # fmt: skip

T = TypeVar("T")

READERS = 2
"""Threads for reading; more would only queue for the interpreter."""
WATCHERS = 4
"""Threads that wait for changes, each for all who have seen the same: a wait that nobody ends lasts half a second."""


class Lane:
    """Threads that take calls in order and hand the results back to the loop that asked."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._count = threads
        self._calls: queue.SimpleQueue[tuple[Any, asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False

    async def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Drive a coroutine of a blocking store to its end on a thread of this lane."""
        return await self.put(coroutine)

    async def call_through(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The same, and see it through though the task is cancelled: what is under way cannot be called back."""
        future = self.put(coroutine)
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        return future.result()

    def put(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Begin to drive a coroutine, and give what it will come to."""
        if self._closed:
            coroutine.close()
            raise StoreFailed("The store is closed; open it again.")
        if len(self._threads) < self._count:
            self._start()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.put((coroutine, future))
        return future

    def close(self) -> None:
        """Let the threads end after what is queued."""
        if not self._closed:
            self._closed = True
            for _ in self._threads:
                self._calls.put(None)
            for thread in self._threads:
                thread.join()

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name=f"keepstep {self._name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            coroutine, future = call
            try:
                value, error = drive(coroutine), None
            except BaseException as caught:  # noqa: BLE001 - it is raised where the call came from
                value, error = None, caught
            with suppress(RuntimeError):  # the loop was closed while the call ran: nobody is left to be told
                future.get_loop().call_soon_threadsafe(_settle, future, value, error)
            call = coroutine = future = value = error = None


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return  # the task that asked was cancelled
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


class Lookups:
    """Looks up keys of a run's ledger: what tasks ask for in one turn of the loop is read together.

    Of 64 calls that begin at once each looks for what is known of it; one by one these would be 64 hand-overs.
    """

    def __init__(self, store: Store, lane: Lane) -> None:
        self._store = store
        self._lane = lane
        self._waiting: dict[str, list[tuple[Sequence[bytes], asyncio.Future[list[LedgerEntry]]]]] = {}
        """By run: the keys that somebody waits for."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def look_up(self, run_id: str, keys: Sequence[bytes]) -> list[LedgerEntry]:
        """What the ledger has under these keys."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[LedgerEntry]] = loop.create_future()
        if run_id not in self._waiting:
            self._waiting[run_id] = []
            task = loop.create_task(self._read(run_id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._waiting[run_id].append((keys, future))
        return await future

    async def _read(self, run_id: str) -> None:
        asked = self._waiting.pop(run_id)
        try:
            keys = list(dict.fromkeys(key for keys, _ in asked for key in keys))
            found = await self._lane.call(self._store.effects(run_id, keys))
        except BaseException as error:  # noqa: BLE001 - it is raised where the calls came from
            for _, future in asked:
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # so that nobody is told off when the task that asked has left meanwhile
            return
        for keys, future in asked:
            _settle(future, [one for one in found if one.key in keys], None)


class OffThread:
    """Any blocking store, as one whose methods suspend."""

    blocking = False

    def __init__(self, store: Store) -> None:
        self.store = store
        self.url = store.url
        self.read_only = store.read_only
        self._writes = Lane("writer", 1)
        self._reads = Lane("reader", READERS)
        self._lookups = Lookups(store, self._reads)
        self._watches = Lane("watcher", WATCHERS)
        self._watched: dict[int, asyncio.Future[int]] = {}
        """The waits under way, by what those who wait have seen."""

    async def open(self) -> None:
        """See `Store.open`."""
        await self._writes.call(self.store.open())

    async def commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        """See `Store.commit`."""
        return await self._writes.call_through(self.store.commit(batch))

    async def view(self, run_id: str) -> View:
        """See `Store.view`."""
        return await self._reads.call(self.store.view(run_id))

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
        return await self._reads.call(
            self.store.records(run_id, after=after, until=until, bodies=bodies, newest_first=newest_first, limit=limit)
        )

    async def pick(self, run_id: str, seqs: Sequence[int]) -> list[Stored]:
        """See `Store.pick`."""
        return await self._reads.call(self.store.pick(run_id, seqs))

    async def effects(self, run_id: str, keys: Sequence[bytes] | None = None) -> list[LedgerEntry]:
        """See `Store.effects`."""
        if keys is None:
            return await self._reads.call(self.store.effects(run_id, keys))
        return await self._lookups.look_up(run_id, keys)

    async def rows(self, query: Query, cursor: str | None, limit: int) -> Page:
        """See `Store.rows`."""
        return await self._reads.call(self.store.rows(query, cursor, limit))

    async def claim(
        self, workflows: Sequence[str] | None, limit: int, decide: Callable[[View], Append | None]
    ) -> list[Committed]:
        """See `Store.claim`."""
        return await self._writes.call(self.store.claim(workflows, limit, decide))

    async def delete(self, run_id: str, decide: Callable[[View], None]) -> bool:
        """See `Store.delete`."""
        return await self._writes.call(self.store.delete(run_id, decide))

    async def enlist(self, owner: str, seconds: float) -> None:
        """See `Store.enlist`."""
        await self._writes.call(self.store.enlist(owner, seconds))

    async def renew(self, owner: str, seconds: float) -> Renewal:
        """See `Store.renew`."""
        return await self._reads.call(self.store.renew(owner, seconds))

    async def retire(self, owner: str) -> None:
        """See `Store.retire`."""
        await self._writes.call(self.store.retire(owner))

    async def changes(self, seen: int | None, seconds: float) -> int:
        """See `Store.changes`. Those who have seen the same wait together: each alone would take a thread."""
        if seen is None or seconds <= 0:
            return await self._reads.call(self.store.changes(seen, seconds))
        watch = self._watched.get(seen)
        if watch is None:
            watch = self._watched[seen] = self._watches.put(self.store.changes(seen, seconds))
            watch.add_done_callback(lambda _: self._watched.pop(seen, None))
        done, _ = await asyncio.wait([watch], timeout=seconds)
        return watch.result() if done else seen

    async def now(self) -> int:
        """See `Store.now`."""
        return await self._reads.call(self.store.now())

    async def size(self, run_id: str | None) -> Weight:
        """See `Store.size`."""
        return await self._reads.call(self.store.size(run_id))

    async def backup(self, target: str) -> None:
        """See `Store.backup`."""
        await self._writes.call(self.store.backup(target))

    def after_fork(self) -> None:
        """See `Store.after_fork`; the threads are the parent's, the child starts its own."""
        self.store.after_fork()
        self._writes = Lane("writer", 1)
        self._reads = Lane("reader", READERS)
        self._lookups = Lookups(self.store, self._reads)
        self._watches = Lane("watcher", WATCHERS)
        self._watched = {}

    async def close(self) -> None:
        """See `Store.close`."""
        await self._writes.call(self.store.close())
        for lane in (self._writes, self._reads, self._watches):
            lane.close()
