"""What the tests of the SQLite store share: a clock to turn, logs that grow, and programs in other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from keepstep.errors import NotAllowed
from keepstep.log.fold import Folding, thaw
from keepstep.log.grow import Draft, grow
from keepstep.log.records import Claimed, Opened, Saved
from keepstep.store.base import Append, Decision, View
from keepstep.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[3]


class TurnedClock:
    """A clock that goes on when it is told to, or slept on."""

    def __init__(self, us: int = 1_000_000) -> None:
        self.us = us
        self.slept: list[float] = []

    def now_us(self) -> int:
        return self.us

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.us += round(seconds * 1e6)


def done(work: Coroutine[Any, Any, Any]) -> Any:
    """What a method of a blocking store returns; it never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a blocking store suspended")


class Log:
    """A run as its writer knows it."""

    def __init__(self, run_id: str, clock: Any = None, row: Folding | None = None) -> None:
        self.run_id = run_id
        self.clock = clock or TurnedClock()
        self.row = row or Folding()

    def append(self, *drafts: Draft, moved: bool = True, **more: Any) -> Append:
        """The next append; the log counts it as written."""
        after = (self.row.seq, self.row.digest)
        grown = grow(
            self.row,
            self.run_id,
            drafts,
            now_us=self.clock.now_us(),
            batch=os.urandom(8),
            epoch=self.row.epoch,
            holder=True,
        )
        return Append(self.run_id, *after, grown.records, self.row.freeze(), grown.ledger, moved, **more)

    def opened(self, workflow: str = "w", owner: str | None = None, **more: Any) -> Append:
        """The first append: the run is there, and claimed if an owner is named."""
        drafts = [Draft(Opened(workflow=workflow, **more))]
        if owner is not None:
            drafts.append(Draft(Claimed(owner=owner, epoch=self.row.epoch + 1)))
        return self.append(*drafts)

    def saved(self, body: bytes = b"state", moved: bool = False, **more: Any) -> Append:
        """A checkpoint, in its two hot forms."""
        step = self.row.depth + 1
        return self.append(Draft(Saved(step=step, depth=step, **more), body), moved=moved)


def claiming(run_id: str, owner: str) -> Decision:
    """A decision to claim a run that is not running under a living owner."""

    def decide(view: View) -> Append:
        assert view.row is not None
        if view.holder is not None and view.holder.stands:
            raise NotAllowed("held", run_id)
        log = Log(run_id, TurnedClock(view.now_us), thaw(view.row))
        return log.append(Draft(Claimed(owner=owner, epoch=view.row.epoch + 1)))

    return Decision(run_id, decide)


def opened(path: Path, clock: Any = None, **more: Any) -> SqliteStore:
    """An open store."""
    store = SqliteStore(str(path), clock or TurnedClock(), **more)
    done(store.open())
    return store


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another process that runs this, with everything of this module at hand."""
    prelude = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.store.sqlite.growing import *\n"
    return subprocess.Popen(
        [sys.executable, "-c", prelude + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    """What a process printed, once it has ended well."""
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out.strip()
