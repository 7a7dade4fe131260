"""A file that is touched as long as a worker lives, for whoever supervises it."""

from __future__ import annotations

import time
from pathlib import Path

TOUCH_SECONDS = 1.0


class Alive:
    """Touches a file, at most once a second."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._touched = -TOUCH_SECONDS

    def touch(self) -> None:
        """Say that the worker lives."""
        if self._path is not None and time.monotonic() - self._touched >= TOUCH_SECONDS:
            self._path.touch()
            self._touched = time.monotonic()
