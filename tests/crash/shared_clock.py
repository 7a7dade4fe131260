"""One clock for many processes, which the test turns."""

from __future__ import annotations

import mmap
import struct
import threading
import time
from pathlib import Path

from keepstep.testing.clock import START_US

LOOK_SECONDS = 0.001
_FORM = struct.Struct("=q")


class SharedClock:
    """Its time is in a file; it stands still until somebody turns it, and whoever waits waits for that."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(_FORM.pack(START_US))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _FORM.size)

    def now_us(self) -> int:
        """Microseconds since 1970."""
        return _FORM.unpack_from(self._map)[0]

    def turn(self, seconds: float) -> None:
        """Let time pass, for every process; only one of them turns."""
        _FORM.pack_into(self._map, 0, self.now_us() + round(seconds * 1e6))

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait until `stop` is set (True), or until the clock has been turned so far (False)."""
        end_us = self.now_us() + round(seconds * 1e6)
        while not stop.wait(LOOK_SECONDS):
            if self.now_us() >= end_us:
                return False
        return True

    def sleep(self, seconds: float) -> None:
        """Wait until the clock has been turned so far."""
        end_us = self.now_us() + round(seconds * 1e6)
        while self.now_us() < end_us:
            time.sleep(LOOK_SECONDS)

    async def pause(self, seconds: float) -> None:
        """The same on an event loop."""
        import asyncio

        await asyncio.to_thread(self.sleep, seconds)
