"""A clock that tests turn."""

from __future__ import annotations

import threading
import time

REAL_SECONDS_MOST = 5.0
"""So long a wait for another thread may really take; what is waited for comes within milliseconds."""


class TurnedClock:
    """Time passes when it is turned, slept, or waited away."""

    def __init__(self, now_us: int = 1_700_000_000_000_000) -> None:
        self._now_us = now_us
        self._mutex = threading.Lock()

    def now_us(self) -> int:
        """Microseconds since 1970."""
        return self._now_us

    def turn(self, seconds: float) -> None:
        """Let the time pass at once."""
        with self._mutex:
            self._now_us += round(seconds * 1e6)

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait until `stop` is set (True) or the time has passed (False)."""
        if stop.wait(min(seconds, REAL_SECONDS_MOST)):
            return True
        self.turn(seconds)
        return stop.is_set()

    def sleep(self, seconds: float) -> None:
        """Let the time pass, and other threads work."""
        time.sleep(min(seconds, 0.001))
        self.turn(seconds)
