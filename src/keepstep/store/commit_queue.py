"""Group commit: whatever is waiting when a commit ends goes into the next one together.

Items are put in by any thread or task. Somebody *leads*: calls `round` until the queue is empty or its own item is
done. Who leads, and how the others wait, is the runtime's business (`keepstep.runtime`); here is what a round does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Protocol

from keepstep.store.base import Busy, Entry, Outcome, Store

ENTRIES_MAX = 512
"""A commit larger than this would keep its first writer waiting for the last one."""


class Item(Protocol):
    """Something that wants to be written."""

    def entry(self) -> Entry | None:
        """What to write now; None when it has to read before it knows (`recover` is called, then it comes again)."""
        ...

    async def recover(self) -> bool:
        """Read what is needed. True when there is something to write afterwards."""
        ...

    def deliver(self, outcome: Outcome | BaseException) -> bool:
        """Told how it went. True when it wants to be written again. An exception means: nobody knows."""
        ...

    def failed(self, error: BaseException) -> None:
        """Told that it could not be tried at all."""
        ...

    def wake(self) -> bool:
        """Wake a thread that waits for it, to lead; False when none does."""
        ...


class CommitQueue:
    """The one way into a store for everything that is written."""

    def __init__(self, store: Store, mutex: AbstractContextManager[object]) -> None:
        self.store = store
        self._mutex = mutex
        self._waiting: deque[Item] = deque()
        self._flying: list[Item] = []
        """Taken by a leader and not told yet; what an interrupted leader leaves behind is told by the next one."""
        self._alone: deque[Item] = deque()
        """Items that go one to a commit: their run was locked elsewhere, or a commit of many failed with them in it."""
        self._was_alone = False
        """The last round had one of those: while a run stays locked, the others are written in between."""
        self._leader = False
        self.told = 0
        """How many the last round has told."""

    def put(self, item: Item) -> None:
        """Queue an item; an item must not be put in twice before it was told."""
        with self._mutex:
            self._waiting.append(item)

    def lead(self) -> bool:
        """Become the leader, unless somebody is."""
        with self._mutex:
            if self._leader:
                return False
            self._leader = True
            return True

    def follow(self) -> list[Item]:
        """Stop leading; returns the items that wait for a new leader."""
        with self._mutex:
            self._leader = False
            return [*self._flying, *self._alone, *self._waiting]

    @property
    def waiting(self) -> int:
        """How many will be in the next round."""
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Nothing waits."""
        return not (self._waiting or self._flying or self._alone)

    async def drain(self) -> None:
        """Write everything that waits; for a store that is being closed."""
        if self.lead():
            try:
                while not self.idle:
                    await self.round()
            finally:
                self.follow()

    def abandon(self, error: BaseException) -> None:
        """Tell everybody who waits that nothing can be written: whoever led met this error, and nobody follows."""
        with self._mutex:
            items = [*self._flying, *self._alone, *self._waiting]
            self._flying = []
            self._alone.clear()
            self._waiting.clear()
        for item in items:
            item.failed(error)

    async def round(self) -> None:
        """Write what waits, in one commit, and tell everybody how it went.

        Ctrl-C may end it between any two lines. An item is therefore always in `_flying` or waiting before it leaves
        the other, and one that stands in both is asked for its entry twice, which does no harm.
        """
        if self._flying:
            self._clear_wreck()
        entries = await self._take()
        if not entries:
            return
        try:
            outcomes: Sequence[Outcome | BaseException] = await self.store.commit(entries)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told to those who wait
            if len(entries) > 1:
                self._split()
                return
            outcomes = [error]
        except BaseException:
            self._clear_wreck()
            raise
        self.told = len(entries)
        for outcome in outcomes:
            item = self._flying[0]
            if isinstance(outcome, Busy):
                self._alone.append(item)
                item.deliver(outcome)
            elif item.deliver(outcome):
                self._waiting.append(item)
            del self._flying[0]

    async def _take(self) -> list[Entry]:
        """Move what waits to `_flying`; returns the entries, in the same order."""
        with self._mutex:
            is_alone = bool(self._alone) and not (self._was_alone and self._waiting)
            self._was_alone = is_alone
            source = self._alone if is_alone else self._waiting
            items = list(islice(source, 1 if is_alone else ENTRIES_MAX))
            self._flying = list(items)
            for _ in items:
                source.popleft()
        entries: list[Entry] = []
        for item in items:
            entry = item.entry() or await self._recovered(item)
            if entry is None:
                self._flying.remove(item)
            else:
                entries.append(entry)
        return entries

    async def _recovered(self, item: Item) -> Entry | None:
        """The entry of an item that has to read first; None when there is nothing to write after that."""
        try:
            while await item.recover():
                if (entry := item.entry()) is not None:
                    return entry
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told to those who wait
            item.failed(error)
        return None

    def _split(self) -> None:
        """A commit of many failed as a whole: each finds out for itself, alone: one bad append harms no other."""
        self._tell_unknown(self._alone)

    def _clear_wreck(self) -> None:
        """Tell the items of an interrupted round that nobody knows how it went."""
        self._tell_unknown(self._waiting)

    def _tell_unknown(self, target: deque[Item]) -> None:
        while self._flying:
            item = self._flying[0]
            if item.deliver(InterruptedError("the commit was interrupted; whether it was written is not known")):
                target.append(item)
            del self._flying[0]
