"""The smallest thing that can wait in a commit queue, and a store that can be told to fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from keepstep.runtime.clock import SystemClock
from keepstep.store.base import Decision, Entry, Outcome
from keepstep.store.commit_queue import CommitQueue
from keepstep.store.memory import MemoryStore


class Wish:
    """Wants to be decided about once, and has nothing to write."""

    def __init__(self, queue: CommitQueue, promise: Any) -> None:
        self.promise = promise
        queue.put(self)

    def entry(self) -> Decision:
        return Decision("nobody", lambda view: None)

    async def recover(self) -> bool:
        return False

    def deliver(self, outcome: Outcome | BaseException) -> bool:
        if isinstance(outcome, InterruptedError):
            return True
        if isinstance(outcome, BaseException):
            self.promise.fail(outcome)
        else:
            self.promise.set(outcome)
        return False

    def failed(self, error: BaseException) -> None:
        self.promise.fail(error)

    def wake(self) -> bool:
        return self.promise.wake()


class Watched(MemoryStore):
    """A store in memory that remembers who committed how much, and acts before each commit as it is told."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.sizes: list[int] = []
        self.threads: list[int] = []
        self.before: Callable[[], object] = lambda: None
        self.gate: asyncio.Event | None = None
        """For event loops: a commit is not done before it is set."""

    async def commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        self.sizes.append(len(batch))
        self.threads.append(threading.get_ident())
        self.before()
        if self.gate is not None:
            await self.gate.wait()
        return await super().commit(batch)
