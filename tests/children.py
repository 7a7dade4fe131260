"""Work done in forked children: what it gives comes back, what it raises is raised again."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any


class Child:
    """A forked process that does one piece of work; it never returns into the tests of its parent."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._reading, writing = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reading)
            _work(work, writing)
        os.close(writing)

    def result(self) -> Any:
        """What the work gave; waits for the end of the process."""
        with os.fdopen(self._reading, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(self.pid, 0)
        assert data, f"the child ended with status {status} and told nothing"
        done, value = pickle.loads(data)
        if not done:
            raise AssertionError(f"in the child:\n{value}")
        return value

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._reading)


def in_child(work: Callable[[], Any]) -> Any:
    """What the work gives when a forked child does it."""
    return Child(work).result()


def in_children(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """The same, all at once."""
    return [child.result() for child in [Child(work) for work in works]]


class Baton:
    """Lets one process wait for another."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()

    def give(self) -> None:
        """Let one who waits go on."""
        os.write(self._writing, b".")

    def take(self) -> None:
        """Wait until it is given."""
        assert os.read(self._reading, 1) == b"."

    def close(self) -> None:
        """Nobody waits any more."""
        os.close(self._reading)
        os.close(self._writing)


def _work(work: Callable[[], Any], writing: int) -> None:
    try:
        try:
            told = (True, work())
        except BaseException:
            told = (False, traceback.format_exc())
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(told))
    finally:
        os._exit(0)
