"""A worker inside a program: a block that carries runs beside whatever else the program does; sync and async."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from keepstep.errors import WrongUse
from keepstep.runtime.durations import Duration, seconds
from keepstep.runtime.inline import drive
from keepstep.worker.shift import Shift

if TYPE_CHECKING:
    import asyncio


JOIN_SECONDS = 0.5
"""One wait for the end. The system may hand a signal to any thread; its handler runs when the main one is awake."""


class _Worker:
    """A shift that is worked beside the program."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift

    def stop(self, *, at_once: bool = False) -> None:
        """Claim nothing any more, let steps end within the grace time, and give back the rest.

        It returns at once, and may be called from a signal's handler. `at_once` gives no grace.
        """
        self._shift.stop(at_once=at_once)

    @property
    def carrying(self) -> tuple[str, ...]:
        """The ids of the runs that are being carried."""
        return self._shift.carrying


class Worker(_Worker):
    """Carries runs in threads of this process, from the beginning of its `with` block to the end."""

    def __init__(self, shift: Shift) -> None:
        super().__init__(shift)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def wait(self, timeout: Duration | None = None) -> bool:
        """Wait until the worker has ended; False when it has not by then. Raises what ended it otherwise."""
        thread = self._begun()
        end = None if timeout is None else time.monotonic() + seconds(timeout, "timeout")
        while thread.is_alive():
            left = JOIN_SECONDS if end is None else end - time.monotonic()
            thread.join(min(max(left, 0.0), JOIN_SECONDS))
            if left <= 0:
                break
        if thread.is_alive():
            return False
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise WrongUse("This worker has begun already; make another one with store.worker(...).")
        self._thread = threading.Thread(target=self._work, name="keepstep worker", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        try:
            self._wait_for_end()
        except BaseException as second:  # noqa: BLE001 - it is raised, or told with the first one
            _raise_or_note(error, second)

    def _wait_for_end(self) -> None:
        """Wait; whoever interrupts that does not want to wait for the grace time."""
        try:
            self.wait()
        except KeyboardInterrupt:
            self.stop(at_once=True)
            self.wait()
            raise

    def _work(self) -> None:
        try:
            drive(self._shift.work())
        except BaseException as error:  # noqa: BLE001 - it is raised at the end of the block
            self._error = error

    def _begun(self) -> threading.Thread:
        if self._thread is None:
            raise WrongUse("This worker has not begun; enter it: with store.worker(...) as worker.")
        return self._thread


class AsyncWorker(_Worker):
    """Carries runs in tasks of this event loop, from the beginning of its `async with` block to the end."""

    _task: asyncio.Task[None] | None = None

    async def wait(self, timeout: Duration | None = None) -> bool:
        """Wait until the worker has ended; False when it has not by then. Raises what ended it otherwise."""
        import asyncio

        if self._task is None:
            raise WrongUse("This worker has not begun; enter it: async with store.worker(...) as worker.")
        done, _ = await asyncio.wait([self._task], timeout=None if timeout is None else seconds(timeout, "timeout"))
        if done:
            self._task.result()
        return bool(done)

    async def __aenter__(self) -> Self:
        import asyncio

        if self._task is not None:
            raise WrongUse("This worker has begun already; make another one with store.worker(...).")
        self._task = asyncio.get_running_loop().create_task(self._shift.work(), name="keepstep worker")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        try:
            await self._wait_for_end()
        except BaseException as second:  # noqa: BLE001 - it is raised, or told with the first one
            _raise_or_note(error, second)

    async def _wait_for_end(self) -> None:
        """Wait; whoever cancels that does not want to wait for the grace time."""
        import asyncio

        try:
            await self.wait()
        except asyncio.CancelledError:
            self.stop(at_once=True)
            if self._task is not None and not self._task.done():
                await asyncio.wait([self._task])
            raise


def _raise_or_note(first: BaseException | None, second: Any) -> None:
    """What leaves the block itself is stronger than what ended the worker."""
    if first is None:
        raise second
    first.add_note(f"The worker had ended with {type(second).__name__}: {second}")
