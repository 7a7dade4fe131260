"""Whose turn it is to write: one thread of one process at a time.

SQLite's own waiting for the write lock sleeps in steps and is unfair: with 16 processes, the worst commit took 1.3 s,
behind an `flock` 0.13 s. So writers queue up on a side file first. It is never the store's file itself, because
closing any descriptor of that one would drop the locks that SQLite has on it in this process.

A process that is frozen (not killed) inside its turn, which lasts for a commit, keeps the others waiting until it goes
on or is killed.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from types import TracebackType

from keepstep.store.places import FILE_MODE, cannot_open


class Turn:
    """Held while writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mutex = threading.Lock()
        self._descriptor = -1

    def __enter__(self) -> None:
        self.mutex.acquire()
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError as error:
            self.mutex.release()
            raise cannot_open(self.path, error) from error
        except BaseException:
            self.mutex.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        finally:
            self.mutex.release()

    def close(self) -> None:
        """Let go of the side file."""
        with self.mutex:
            self._close()

    def forget(self) -> None:
        """In a forked child: a descriptor shared with the parent would not keep the two apart."""
        self.mutex = threading.Lock()
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
