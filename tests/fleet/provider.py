"""The world outside of a fleet: one file, of which every line is synced, shared by all processes that do anything.

It is an honest provider: whoever asks whether something happened, and is told that it did not, closes that key, so that
a worker that wakes late is refused.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class Line(NamedTuple):
    """What was written: something happened (`did`), or will never happen under its key (`closed`)."""

    what: str
    tool: str
    order: int
    key: str


class Provider:
    """Does things, once per key if it is asked to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def do(self, tool: str, order: int, key: str, *, once_per_key: bool = False) -> bool:
        """Make something happen; False when the key is closed."""
        with self._alone() as file:
            lines = _read(file)
            if any(line.what == "closed" and line.key == key for line in lines):
                return False
            if not (once_per_key and any(line.key == key for line in lines)):
                _write(file, Line("did", tool, order, key))
            return True

    def ask(self, key: str) -> bool:
        """Whether something happened under this key; if it did not, it never will."""
        with self._alone() as file:
            if any(line.what == "did" and line.key == key for line in _read(file)):
                return True
            _write(file, Line("closed", "", 0, key))
            return False

    def happened(self) -> list[Line]:
        """Everything that happened."""
        with self._alone() as file:
            return [line for line in _read(file) if line.what == "did"]

    @contextmanager
    def _alone(self) -> Iterator[int]:
        file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _read(file: int) -> list[Line]:
    os.lseek(file, 0, os.SEEK_SET)
    data = b""
    while more := os.read(file, 1 << 20):
        data += more
    # A process that was killed in the middle of a line has made nothing happen.
    return [Line(*json.loads(line)) for line in data.split(b"\n") if line.endswith(b"]")]


def _write(file: int, line: Line) -> None:
    told: list[Any] = list(line)
    os.write(file, b"\n" + json.dumps(told).encode() + b"\n")
    os.fsync(file)
