"""What a store should hold after some public calls, as plain values; and what a real store holds, in the same form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import keepstep

PAGE = 1000


@dataclass
class Kept:
    """One run, as everybody can see it."""

    workflow: str
    incarnation: int = 1
    status: str = "ready"
    saves: list[tuple[int, str | None, str | None, Any]] = field(default_factory=list)
    """(step, next, label, state) of every checkpoint, oldest first."""
    tags: dict[str, Any] = field(default_factory=dict)
    note: Any = None
    result: Any = None
    parent: tuple[str, int] | None = None
    """The run it was forked from, and the step."""

    @property
    def step(self) -> int | None:
        """The step of the current checkpoint."""
        return self.saves[-1][0] if self.saves else None


@dataclass
class Model:
    """A whole store."""

    runs: dict[str, Kept] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)
    """Run id → how many lives it has had, deleted ones too."""

    def copy(self) -> Model:
        """Another one, that can change without this one; nobody changes states."""
        runs = {run_id: replace(kept, saves=[*kept.saves]) for run_id, kept in self.runs.items()}
        return Model(runs, dict(self.lives))

    def create(self, run_id: str, workflow: str, **fields: Any) -> Kept:
        """A run begins."""
        self.lives[run_id] = self.lives.get(run_id, 0) + 1
        self.runs[run_id] = Kept(workflow, self.lives[run_id], **fields)
        return self.runs[run_id]

    def ensure(self, run_id: str, workflow: str | None) -> Kept:
        """The run, created if it is not there."""
        if run_id in self.runs:
            return self.runs[run_id]
        assert workflow is not None, "the script must name a workflow to create a run"
        return self.create(run_id, workflow)


def picture(store: keepstep.Store) -> dict[str, Kept]:
    """What a store holds, read through its public face."""
    heads = store.runs(limit=PAGE).items
    assert len(heads) < PAGE
    return {head.run_id: _kept(store, head.run_id) for head in heads}


def _kept(store: keepstep.Store, run_id: str) -> Kept:
    look = store.look(run_id)
    lines = store.history(run_id, newest_first=False, limit=PAGE).items
    return Kept(
        workflow=look.workflow,
        incarnation=look.incarnation,
        status=look.status,
        saves=[(one.step, one.next, one.label, store.at(run_id, seq=one.seq).state) for one in lines],
        tags=dict(look.tags),
        note=look.note,
        result=look.result,
        parent=None if look.parent is None else (look.parent.run_id, look.parent.step),
    )


def unsound(store: keepstep.Store) -> list[str]:
    """Every run that does not verify, with what is wrong."""
    found = ((head.run_id, store.verify(head.run_id)) for head in store.runs(limit=PAGE).items)
    return [f"{run_id}: {check.damage}" for run_id, check in found if not check.ok]
