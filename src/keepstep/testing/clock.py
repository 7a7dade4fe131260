"""A clock that a test turns."""

from __future__ import annotations

import threading

START_US = 1_750_000_000_000_000
"""Some day in 2025: like a real time, and always the same."""
LOOK_SECONDS = 0.005
"""How often a waiting thread looks whether the clock was turned."""


class Clock:
    """Time stands still until it is turned; whoever sleeps turns it."""

    def __init__(self, start_us: int = START_US) -> None:
        self._now_us = start_us
        self._mutex = threading.Lock()

    def now_us(self) -> int:
        """Microseconds since 1970."""
        return self._now_us

    def turn(self, seconds: float) -> None:
        """Let time pass at once; it never runs backwards."""
        if seconds < 0:
            raise ValueError("a clock is turned forwards")
        with self._mutex:
            self._now_us += int(seconds * 1e6)

    def sleep(self, seconds: float) -> None:
        """Let the time pass: the sleeper turns the clock."""
        self.turn(max(0.0, seconds))

    async def pause(self, seconds: float) -> None:
        """The same on an event loop, whose other tasks get their turn."""
        import asyncio

        self.sleep(seconds)
        await asyncio.sleep(0)

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait until `stop` is set (True), or until the clock has been turned so far (False)."""
        end_us = self._now_us + int(seconds * 1e6)
        while not stop.wait(LOOK_SECONDS):
            if self._now_us >= end_us:
                return False
        return True
