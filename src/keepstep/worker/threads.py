"""A crew of threads, for a sync store: each carries one run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from keepstep.runtime.inline import drive


class Threads:
    """Runs that are carried, each in a thread of its own."""

    def __init__(self) -> None:
        self._bell = threading.Condition()
        self._busy = 0
        self._rung = False

    @property
    def busy(self) -> int:
        """How many are at work."""
        return self._busy

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Set one more to work."""
        with self._bell:
            self._busy += 1
        # A daemon: what cannot be interrupted must not keep the process from its end once its run was given back.
        threading.Thread(target=self._carry_out, args=(work,), name="keepstep carrier", daemon=True).start()

    def ring(self) -> None:
        """Wake who waits."""
        with self._bell:
            self._rung = True
            self._bell.notify_all()

    async def wait(self, seconds: float) -> None:
        """Wait until one has ended, or somebody rang, at most so long."""
        with self._bell:
            if not self._rung:
                self._bell.wait(seconds)
            self._rung = False

    async def rest(self, seconds: float, until: Callable[[], bool]) -> None:
        """Let the time pass, in any thread of the crew, unless it is over."""
        end = time.monotonic() + seconds
        with self._bell:
            while not until() and (left := end - time.monotonic()) > 0:
                self._bell.wait(left)

    async def interrupt(self) -> None:
        """Nobody can interrupt a thread: it finds out by its next keepstep call."""

    def _carry_out(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            drive(work())
        finally:
            with self._bell:
                self._busy -= 1
            self.ring()
