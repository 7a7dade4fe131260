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
    """The host's clock."""

    def __init__(self) -> None:
        self._last_us = 0

    def now_us(self) -> int:
        """Microseconds since 1970, never running backwards within a process."""
        self._last_us = max(self._last_us, time.time_ns() // 1000)
        return self._last_us

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
