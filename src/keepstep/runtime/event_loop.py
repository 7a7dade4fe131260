"""Waiting on an asyncio loop: how async handles await the coroutines of the engine."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from keepstep.runtime.clock import Clock
from keepstep.store.commit_queue import CommitQueue

T = TypeVar("T")


class LoopPromise:
    """An outcome that the pump sets and a task awaits. A task that was cancelled leaves; the outcome still comes."""

    __slots__ = ("done", "future")

    def __init__(self) -> None:
        self.done = False
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def set(self, value: Any) -> None:
        """Give the value."""
        self.done = True
        if not self.future.done():
            self.future.set_result(value)

    def fail(self, error: BaseException) -> None:
        """Give an error instead."""
        self.done = True
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()  # so that nobody is told off when the task that waited has been cancelled

    def wake(self) -> bool:
        """Nothing to do: the pump leads."""
        return True


class LoopRuntime:
    """One task, the pump, leads all commits of a store: one hand-over to the store per turn of the loop."""

    name = "async"

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._pump: asyncio.Task[None] | None = None

    def mutex(self) -> threading.RLock:
        """A lock held for microseconds; the heartbeat's thread takes it too."""
        return threading.RLock()  # type: ignore[return-value]

    def turnstile(self) -> asyncio.Lock:
        """A lock that is held while something is awaited."""
        return asyncio.Lock()

    def promise(self) -> LoopPromise:
        """A new promise."""
        return LoopPromise()

    async def wait(self, queue: CommitQueue, promise: LoopPromise) -> Any:
        """Wait for a promise; the pump is started if it does not run."""
        if not promise.done:
            self.nudge(queue)
        return await promise.future

    def nudge(self, queue: CommitQueue) -> None:
        """Start the pump if it does not run."""
        if not queue.idle and queue.lead():
            self._pump = asyncio.get_running_loop().create_task(self._lead(queue))
            self._pump.add_done_callback(lambda pump: self._led(queue, pump))

    async def drain(self, queue: CommitQueue) -> None:
        """Have everything that waits written, and wait for it; for a store that is being closed."""
        self.nudge(queue)
        while self._pump is not None and not self._pump.done():
            await asyncio.wait([self._pump])

    async def pause(self, seconds: float) -> None:
        """Let the time pass."""
        await self.clock.pause(seconds)

    async def call(self, function: Callable[[], T]) -> T:
        """Run the user's function: a coroutine function on the loop, a plain one in a thread, the context copied."""
        target = getattr(function, "func", function)
        if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__):
            return cast(T, await cast(Any, function()))
        result = await asyncio.to_thread(function)
        return cast(T, await result) if inspect.isawaitable(result) else result

    def _led(self, queue: CommitQueue, pump: asyncio.Task[None]) -> None:
        """Start another pump after one that was cancelled before its first step: it has led nobody."""
        if pump.cancelled():
            queue.follow()
            self.nudge(queue)

    async def _lead(self, queue: CommitQueue) -> None:
        try:
            while not queue.idle:
                # Who cancels every task of a loop must not keep those waiting whom this one was to tell.
                with suppress(asyncio.CancelledError):
                    await queue.round()
        except BaseException as error:
            queue.abandon(error)  # or those who wait would wait for ever
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
        finally:
            queue.follow()
