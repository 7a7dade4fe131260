"""What a plain store keeps: runs as plain values, what can be seen of their logs, leases and handles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self, cast

import keepstep
from keepstep.testing import Clock
from tests.crash.plain_model import Kept, Model
from tests.model.values import copied


class Save(NamedTuple):
    """What is given to save."""

    state: Any
    next: str | None = None
    step: Any = None
    label: str | None = None


@dataclass
class Owner:
    """One open store. Whoever opens the store again is another owner."""

    number: int
    until_us: int = 0
    """Until when its lease runs; 0 before its first claim."""
    frozen: bool = False
    """It has no heartbeat."""
    dead: bool = False


@dataclass
class Log:
    """What can be seen of a run's log besides what it keeps."""

    created_us: int
    changed_us: int
    epoch: int
    seq: int = 1
    owner: int | None = None
    deaths: int = 0
    parent_seq: int | None = None
    marks: list[tuple[int, int, int]] = field(default_factory=list)
    """(seq, epoch, time) of every checkpoint."""


@dataclass
class Handle:
    """A claimed run in the hands of an owner."""

    owner: int
    run_id: str
    incarnation: int
    epoch: int
    closed: bool = False
    lost: type[keepstep.ClaimLost | keepstep.RunGone] | None = None
    """What its first vain write raised."""


class PlainRuns:
    """All runs, and the handles that owners have."""

    def __init__(self, clock: Clock, owners: dict[int, Owner], *, locked: bool) -> None:
        self.clock = clock
        self.owners = owners
        """Shared by all copies: a lease runs whatever becomes of a call."""
        self.locked = locked
        """Whether the dead are known at once."""
        self.kept = Model()
        self.logs: dict[str, Log] = {}
        self.epochs: dict[str, int] = {}
        """Run id → the last epoch of its deleted lives."""
        self.handles: dict[int, Handle] = {}

    def copy(self) -> Self:
        """Another one, that can change without this one."""
        other = type(self)(self.clock, self.owners, locked=self.locked)
        other.kept = self.kept.copy()
        other.logs = {run_id: replace(log, marks=[*log.marks]) for run_id, log in self.logs.items()}
        other.epochs = dict(self.epochs)
        other.handles = {number: replace(handle) for number, handle in self.handles.items()}
        return other

    def entry(self, run_id: str) -> tuple[Kept, Log] | None:
        """A run with its log, if there is one."""
        return self.run(run_id) if run_id in self.kept.runs else None

    def whole(self) -> dict[str, tuple[Kept, Log]]:
        """Every run with its log."""
        return {run_id: self.run(run_id) for run_id in sorted(self.logs)}

    def adopt(self, run_id: str, other: Self) -> None:
        """Have of this run what another store has."""
        copy = other.copy()
        for mine, others in (
            (self.kept.runs, copy.kept.runs),
            (self.kept.lives, copy.kept.lives),
            (self.logs, copy.logs),
            (self.epochs, copy.epochs),
        ):
            _adopt(cast(Any, mine), others, run_id)

    # --- what is asked about a run -------------------------------------------------------------------------------

    def run(self, run_id: str) -> tuple[Kept, Log]:
        """A run that must be there."""
        if run_id not in self.kept.runs:
            raise keepstep.NoSuchRun(run_id)
        return self.kept.runs[run_id], self.logs[run_id]

    def state(self, run_id: str) -> Any:
        """A copy of the current state; None without one."""
        kept = self.kept.runs.get(run_id)
        return copied(kept.saves[-1][3]) if kept is not None and kept.saves else None

    def stands(self, number: int) -> bool:
        """Whether an owner counts as alive."""
        owner = self.owners[number]
        return owner.until_us > self.clock.now_us() and not (owner.dead and self.locked)

    def is_held(self, run_id: str) -> bool:
        """Whether an owner has the run, and stands."""
        owner = self.logs[run_id].owner
        return owner is not None and self.stands(owner)

    def has(self, handle: Handle) -> bool:
        """Whether this handle is the one that may write its run."""
        kept, log = self.kept.runs.get(handle.run_id), self.logs.get(handle.run_id)
        if kept is None or log is None or handle.closed or kept.status != "running":
            return False
        return (kept.incarnation, log.epoch) == (handle.incarnation, handle.epoch)

    def is_left(self, run_id: str, owner: int) -> bool:
        """Whether a run names this owner, and no handle of it can write the run."""
        return self.logs[run_id].owner == owner and not any(
            self.has(handle) for handle in self.handles.values() if (handle.run_id, handle.owner) == (run_id, owner)
        )

    def is_due(self, run_id: str) -> bool:
        """Whether a worker would take it."""
        status = self.kept.runs[run_id].status
        return status == "ready" or (status == "running" and not self.is_held(run_id))

    def by_change(self, run_ids: Iterable[str]) -> list[str]:
        """In the order in which their status last changed."""
        return sorted(run_ids, key=lambda run_id: (self.logs[run_id].changed_us, run_id))

    def where(self, run_id: str) -> tuple[Any, ...]:
        """(step, next, label, state) of the current checkpoint."""
        saves = self.kept.runs[run_id].saves
        return saves[-1] if saves else (None, None, None, None)

    # --- records -------------------------------------------------------------------------------------------------

    def _create(self, run_id: str, workflow: str, **fields: Any) -> None:
        now_us = self.clock.now_us()
        self.kept.create(run_id, workflow, **fields)
        self.logs[run_id] = Log(now_us, now_us, self.epochs.get(run_id, 0))

    def _add(self, run_id: str, save: Save, epoch: int) -> None:
        kept, log = self.run(run_id)
        log.seq += 1
        log.deaths = 0
        log.marks.append((log.seq, epoch, self.clock.now_us()))
        following = 1 if kept.step is None else kept.step + 1
        step = following if save.step is None else save.step
        kept.saves.append((step, save.next, save.label, copied(save.state)))

    def _tag(self, run_id: str, tags: dict[str, Any]) -> None:
        kept, log = self.run(run_id)
        log.seq += 1 if tags else 0
        kept.tags = {name: value for name, value in {**kept.tags, **tags}.items() if value is not None}

    def _end(self, run_id: str, status: str) -> None:
        self.logs[run_id].seq += 1
        self.logs[run_id].owner = None
        self._go(run_id, status)

    def _go(self, run_id: str, status: str) -> None:
        kept, log = self.run(run_id)
        if status != kept.status:
            kept.status = status
            log.changed_us = self.clock.now_us()


def _adopt(mine: dict[str, Any], others: Mapping[str, Any], run_id: str) -> None:
    mine.pop(run_id, None)
    if run_id in others:
        mine[run_id] = others[run_id]
