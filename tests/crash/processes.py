"""Real processes that tests kill and stop.

They are forked from a server process that has imported keepstep and has no other thread, so that one takes
milliseconds to start. What a worker has reported before it was killed can still be read.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

STUCK_SECONDS = 60.0
"""Only a worker that hangs needs so long."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["keepstep", "keepstep.store.sqlite", "keepstep.store.directory"])

Report = Callable[..., None]
"""Tells the test something; what was told before a kill arrives."""


class Worker:
    """A process that runs `function(report, hear, *args)`; `hear()` waits for what the test tells it."""

    def __init__(self, function: Callable[..., None], *args: Any) -> None:
        self._reports, theirs = _context.Pipe(duplex=True)
        self._process = _context.Process(target=_work, args=(function, theirs, args), daemon=True)
        self._process.start()
        theirs.close()
        self.ended = False
        """No report will come any more."""

    @property
    def reports(self) -> Connection:
        """To wait for several workers at once."""
        return self._reports

    def hear(self) -> Any:
        """The next report; None when the worker has ended. Raises what the worker raised."""
        if not self._reports.poll(STUCK_SECONDS):
            raise TimeoutError(f"worker {self._process.pid} has said nothing for {STUCK_SECONDS} s")
        try:
            told = self._reports.recv()
        except (EOFError, OSError):  # it was killed, perhaps in the middle of a word
            self.ended = True
            return None
        if isinstance(told, _Raised):
            raise AssertionError(f"a worker raised:\n{told.trace}")  # noqa: TRY004 - its error, not ours
        return told

    def heard(self) -> Iterator[Any]:
        """Every report that is there already."""
        while not self.ended and self._reports.poll(0):
            told = self.hear()
            if not self.ended:
                yield told

    def rest(self) -> list[Any]:
        """Every report until the worker's end."""
        told = list(iter(self.hear, None))
        self.join()
        return told

    def tell(self, what: Any) -> None:
        """Say something to the worker."""
        self._reports.send(what)

    def stop(self) -> None:
        """Freeze it, as a debugger or a suspended machine does; it has stopped when this returns."""
        self._signal(signal.SIGSTOP)
        while not _has_stopped(self._process.pid):
            time.sleep(0.001)

    def go_on(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> list[Any]:
        """Kill it on the spot; returns the reports that were not heard yet."""
        self._signal(signal.SIGKILL)
        told = list(iter(self.hear, None))
        self.join()
        return told

    def join(self) -> None:
        """Wait for its end."""
        self._process.join(STUCK_SECONDS)
        assert self._process.exitcode is not None, "a worker hangs"
        self._reports.close()

    def _signal(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()


def _has_stopped(pid: int | None) -> bool:
    """Whether a process is stopped. It is not our child but the server's, so it cannot be waited for."""
    status = Path(f"/proc/{pid}/stat")
    if status.exists():
        return status.read_text().rpartition(") ")[2].startswith("T")
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=True, text=True).stdout
    return state.strip().startswith("T")


class _Raised:
    """A worker ended by an exception."""

    def __init__(self, trace: str) -> None:
        self.trace = trace


def _work(function: Callable[..., None], pipe: Connection, args: tuple[Any, ...]) -> None:
    def report(*what: Any) -> None:
        pipe.send(what[0] if len(what) == 1 else what)

    try:
        function(report, pipe.recv, *args)
    except Exception:
        import traceback

        pipe.send(_Raised(traceback.format_exc()))
    finally:
        pipe.close()
