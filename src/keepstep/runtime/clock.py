"""The clock that everything is handed."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits. Tests hand in one that they turn."""

    def now_us(self) -> int:
        """Microseconds since 1970, never running backwards within a process."""
        ...

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait until `stop` is set (True) or the time has passed (False)."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        ...

    async def pause(self, seconds: float) -> None:
        """Let the time pass on an event loop."""
        ...


class SystemClock:
    """The host's clock, until a store that has a time of its own says what that is."""

    def __init__(self) -> None:
        self._last_us = 0
        self._ahead_us: int | None = None
        """How far the store's time is ahead of the time since the host was started."""

    def now_us(self) -> int:
        """Microseconds since 1970, never running backwards within a process."""
        told_us = time.time_ns() // 1000 if self._ahead_us is None else time.monotonic_ns() // 1000 + self._ahead_us
        self._last_us = max(self._last_us, told_us)
        return self._last_us

    def agree(self, now_us: int) -> None:
        """Go by the time of a store from now on, whatever the host's clock says or is set to."""
        if self._ahead_us is None:
            self._last_us = 0  # the host's may be an hour ahead
        self._ahead_us = now_us - time.monotonic_ns() // 1000

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait until `stop` is set (True) or the time has passed (False)."""
        return stop.wait(seconds)

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        time.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        """Let the time pass on an event loop."""
        import asyncio

        await asyncio.sleep(seconds)
