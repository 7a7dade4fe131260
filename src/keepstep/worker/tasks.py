"""A crew of tasks, for an async store: each carries one run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

INTERRUPTED_SECONDS = 5.0
"""How long a task that was cancelled may take to leave its run."""


class Tasks:
    """Runs that are carried, each in a task of its own."""

    def __init__(self) -> None:
        self._bell = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> int:
        """How many are at work."""
        return len(self._tasks)

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Set one more to work."""
        task = asyncio.get_running_loop().create_task(work(), name="keepstep carrier")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def ring(self) -> None:
        """Wake who waits."""
        self._bell.set()

    async def wait(self, seconds: float) -> None:
        """Wait until one has ended, or somebody rang, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        self._bell.clear()

    async def rest(self, seconds: float, until: Callable[[], bool]) -> None:
        """Let the time pass, unless it is over."""
        end = time.monotonic() + seconds
        while not until() and (left := end - time.monotonic()) > 0:  # noqa: ASYNC110 - `until` may be set in a signal
            await asyncio.sleep(min(left, 0.05))

    async def interrupt(self) -> None:
        """Cancel all, and wait until they have left their runs."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=INTERRUPTED_SECONDS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.ring()
