"""Waiting inside the call, in the calling thread: how sync handles drive the coroutines of the engine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import Context
from inspect import iscoroutine
from typing import Any, TypeVar

from keepstep.engine.calls import NeverAwaitedError
from keepstep.errors import WrongUse
from keepstep.runtime.clock import Clock
from keepstep.store.commit_queue import CommitQueue

T = TypeVar("T")

DRAIN_SECONDS = 10.0
"""How long a store that is being closed waits for what another thread is writing; in a signal handler, that is us."""

SIBLINGS_SECONDS = 0.0001
"""Less than a commit takes, and more than a thread needs from being told to its next save."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends; it is an error if it does."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise WrongUse("Something was awaited that only an event loop can wait for. Use keepstep.open_async() for it.")


def _await_siblings(queue: CommitQueue) -> None:
    """Let those come along who were told together a moment ago, as long as more of them come.

    Threads that save all the time would otherwise be in step with half of them at a time, each half keeping the other
    from the interpreter lock.
    """
    seen = 0
    while seen < queue.waiting < queue.told:
        seen = queue.waiting
        time.sleep(SIBLINGS_SECONDS)


def _join(threads: Sequence[threading.Thread]) -> BaseException | None:
    """Wait until all have ended, also when Ctrl-C comes, which is returned. A second one is raised at once."""
    interrupted: BaseException | None = None
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as error:
                if interrupted is not None:
                    raise
                interrupted = error
    return interrupted


class InlinePromise:
    """An outcome that one thread sets and another waits for."""

    __slots__ = ("_bell", "_error", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._bell: threading.Lock | None = None
        """Locked until somebody wakes the thread that waits. An Event, which does the same, takes ten times as long."""

    def set(self, value: Any) -> None:
        """Give the value; wakes whoever waits."""
        self._value = value
        self._finish()

    def fail(self, error: BaseException) -> None:
        """Give an error instead."""
        self._error = error
        self._finish()

    def wake(self) -> bool:
        """Let the thread that waits look around; False when none does."""
        bell = self._bell
        if bell is None:
            return False
        with suppress(RuntimeError):  # it was woken already
            bell.release()
        return True

    def sleep(self, seconds: float) -> None:
        """Wait until woken. `prepare` must have been called before the last look around."""
        if self._bell is not None:
            self._bell.acquire(timeout=seconds)

    def prepare(self) -> None:
        """From here on a wake is not lost."""
        bell = threading.Lock()
        bell.acquire()
        self._bell = bell

    def rise(self) -> None:
        """The thread does not wait any more: it leads, and waking it would wake nobody."""
        self._bell = None

    def result(self) -> Any:
        """The value, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._value

    def _finish(self) -> None:
        self.done = True
        self.wake()


class Turnstile:
    """A thread's lock in the form of an asynchronous one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class InlineRuntime:
    """One of the waiting threads leads the commits; the others sleep until they are told, or the lead falls to them."""

    name = "sync"
    watch_seconds = 1.0
    """How often a waiting thread looks whether its leader is still there; only after a leader was interrupted."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def mutex(self) -> threading.RLock:
        """A lock held for microseconds."""
        return threading.RLock()  # type: ignore[return-value]

    def turnstile(self) -> Turnstile:
        """A lock that is held while something is awaited."""
        return Turnstile()

    def promise(self) -> InlinePromise:
        """A new promise."""
        return InlinePromise()

    async def wait(self, queue: CommitQueue, promise: InlinePromise) -> Any:
        """Wait for a promise, leading the commits if nobody does."""
        while not promise.done:
            if not queue.lead():
                promise.prepare()
                if promise.done:
                    break
                if not queue.lead():
                    promise.sleep(self.watch_seconds)
                    continue
            try:
                promise.rise()
                while not promise.done:
                    assert not queue.idle, "whoever waits has something in the queue"
                    _await_siblings(queue)
                    await queue.round()
            finally:
                self._hand_over(queue)
        return promise.result()

    def nudge(self, queue: CommitQueue) -> None:
        """Have what waits written, though nobody waits for it."""
        drive(queue.drain())

    async def drain(self, queue: CommitQueue) -> None:
        """Have everything that waits written, and wait for it; for a store that is being closed."""
        stop = time.monotonic() + DRAIN_SECONDS
        await queue.drain()
        while not queue.idle and time.monotonic() < stop:
            time.sleep(0.001)  # another thread leads
            await queue.drain()

    async def pause(self, seconds: float) -> None:
        """Let the time pass."""
        self.clock.sleep(seconds)

    async def call(self, function: Callable[[], T], seconds: float | None = None) -> T:
        """Run the user's function, here; nobody can interrupt it."""
        result = function()
        if iscoroutine(result):
            result.close()
            raise NeverAwaitedError(
                f"{result.__qualname__}() gave a coroutine, which only an event loop can await; nothing of it has run. "
                "Call it on a run of keepstep.open_async(), or make it a plain function."
            )
        return result

    async def together(self, calls: Sequence[tuple[Any, Context]]) -> list[tuple[Any, BaseException | None]]:
        """Carry out functions at once, each in a thread of its own; whatever comes, all of them end first."""
        outcomes: list[tuple[Any, BaseException | None]] = [(None, None)] * len(calls)

        def carry_out(index: int, function: Callable[[], Any], context: Context) -> None:
            try:
                outcomes[index] = context.run(function), None
            except BaseException as error:  # noqa: BLE001 - it is raised where the calls were made
                outcomes[index] = None, error

        threads = [
            threading.Thread(target=carry_out, args=(index, *call), name=f"keepstep gather {index}", daemon=True)
            for index, call in enumerate(calls)
        ]
        for thread in threads:
            thread.start()
        interrupted = _join(threads)
        if interrupted is not None:
            raise interrupted
        return outcomes

    def _hand_over(self, queue: CommitQueue) -> None:
        for item in queue.follow():
            if item.wake():
                return
