"""Waiting on an asyncio loop: how async handles await the coroutines of the engine."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, TypeVar, cast

from keepstep.engine.calls import is_awaited
from keepstep.engine.context import OverTimeError
from keepstep.errors import Cancelled, KeepstepError
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

    async def call(self, function: Callable[[], T], seconds: float | None = None) -> T:
        """Run the user's function: a coroutine function on the loop, a plain one in a thread, the context copied.

        A coroutine function is cancelled after so long, which raises `OverTimeError`.
        """
        if not is_awaited(function):
            result = await in_thread(function)
            return cast(T, await result) if inspect.isawaitable(result) else result
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return cast(T, await cast(Any, function()))
        except TimeoutError:
            if limit.expired():
                raise OverTimeError from None
            raise

    async def together(self, calls: Sequence[tuple[Any, Context]]) -> list[tuple[Any, BaseException | None]]:
        """Await coroutines at once, each as a task of its own; whatever comes, all of them end first.

        Once one of them finds that the run is cancelled, the others are interrupted.
        """
        tasks = [asyncio.create_task(_awaited(call), context=context) for call, context in calls]
        cancelled: asyncio.CancelledError | None = None
        left = set(tasks)
        while left:
            try:
                ended, left = await asyncio.wait(left, return_when=asyncio.FIRST_EXCEPTION)
                interrupts = any(isinstance(_outcome(task)[1], Cancelled) for task in ended)
            except asyncio.CancelledError as error:
                cancelled, interrupts = error, True
            for task in left if interrupts else ():
                task.cancel()
        if cancelled is not None:
            raise cancelled
        return [_outcome(task) for task in tasks]

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


class Reach:
    """Reaches the task that is inside a block from another thread, and interrupts what it awaits.

    `ask` says whether that is to be done. The interruption is the task's business until it leaves the block.
    """

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        task = asyncio.current_task()
        assert task is not None, "a block is entered by a task"
        self._task = task
        self._before = task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._ask = ask
        self._asking: asyncio.Task[None] | None = None
        self._inside = True
        self._reached = False

    def __call__(self) -> None:
        """Ask, and interrupt if that is the answer; from any thread."""
        with suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(self._begin)

    def leave(self, error: BaseException | None) -> bool:
        """The task leaves the block; whether what it leaves with is our interruption, and nobody else's."""
        self._inside = False
        if not self._reached:
            return False
        return self._task.uncancel() <= self._before and isinstance(error, asyncio.CancelledError)

    def _begin(self) -> None:
        if self._inside and (self._asking is None or self._asking.done()):
            self._asking = self._loop.create_task(self._interrupt())

    async def _interrupt(self) -> None:
        with suppress(KeepstepError):  # whoever writes next is told that the store cannot be read
            if await self._ask() and self._inside:
                self._reached = self._task.cancel()


async def in_thread(function: Callable[[], T]) -> T:
    """Run a plain function in a thread of its own, the context copied.

    Not in the loop's pool, which has few threads: a step that waits in one of them for a tool that waits for another
    would wait for ever. A task that is cancelled leaves; the thread goes on to its end.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(function)
        except BaseException as caught:  # noqa: BLE001 - it is raised where the call was made
            error = caught
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody is left to be told
            loop.call_soon_threadsafe(_settle, future, value, error)

    threading.Thread(target=work, name="keepstep call", daemon=True).start()
    return await future


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return  # the task that waited was cancelled
    if error is None:
        future.set_result(value)
    else:
        if isinstance(error, StopIteration):  # which no future takes
            error = RuntimeError("a plain function raised StopIteration")
        future.set_exception(error)


async def _awaited(call: Any) -> Any:
    found = call() if callable(call) else call
    return await found if inspect.isawaitable(found) else found


def _outcome(task: asyncio.Task[Any]) -> tuple[Any, BaseException | None]:
    if task.cancelled():
        return None, asyncio.CancelledError()
    error = task.exception()
    return (None, error) if error is not None else (task.result(), None)
