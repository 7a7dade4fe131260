"""What a store tells, told from plain dicts: every public call that reads, in the form that `told` gives answers."""

from __future__ import annotations

from typing import Any

import keepstep
from keepstep.codec.difference import difference
from tests.crash.plain_model import Kept
from tests.model.plain_runs import Log
from tests.model.plain_store import PlainStore
from tests.model.values import copied, exact


def head(plain: PlainStore, run_id: str) -> tuple[Any, ...]:
    """A line of a list of runs."""
    kept, log = plain.run(run_id)
    step, next, label, _ = plain.where(run_id)
    parent = None if kept.parent is None else (*kept.parent, log.parent_seq)
    holder = None if log.owner is None else (log.owner, plain.stands(log.owner))
    saved_us = log.marks[-1][2] if log.marks else None
    times = (log.created_us, log.changed_us, saved_us)
    counts = (kept.incarnation, log.epoch, log.deaths, log.seq)
    return (run_id, kept.workflow, kept.status, step, next, label, kept.tags, parent, holder, times, counts)


def look(plain: PlainStore, run_id: str) -> tuple[Any, ...]:
    """A run with its state."""
    kept, _ = plain.run(run_id)
    return (head(plain, run_id), plain.state(run_id), kept.result, kept.note)


def line(kept: Kept, log: Log, index: int) -> tuple[Any, ...]:
    """A checkpoint without its state."""
    step, next, label, _ = kept.saves[index]
    return (step, next, label, *log.marks[index], log.marks[index - 1][0] if index else None)


def history(plain: PlainStore, run_id: str, *, newest_first: bool) -> list[tuple[Any, ...]]:
    """All checkpoints."""
    kept, log = plain.run(run_id)
    lines = [line(kept, log, index) for index in range(len(kept.saves))]
    return lines[::-1] if newest_first else lines


def load(plain: PlainStore, run_id: str) -> tuple[Any, ...] | None:
    """The current checkpoint."""
    kept = plain.kept.runs.get(run_id)
    return _checkpoint(plain, run_id, len(kept.saves) - 1) if kept is not None and kept.saves else None


def at(plain: PlainStore, run_id: str, by: dict[str, Any]) -> tuple[Any, ...]:
    """The newest checkpoint of that step, seq or label; the current one without any of them."""
    kept, log = plain.run(run_id)
    for index in reversed(range(len(kept.saves))):
        step, _, label, _ = kept.saves[index]
        if by.items() <= {"step": step, "seq": log.marks[index][0], "label": label}.items():
            return _checkpoint(plain, run_id, index)
    raise keepstep.NoSuchCheckpoint("no such checkpoint", run_id)


def _checkpoint(plain: PlainStore, run_id: str, index: int) -> tuple[Any, ...]:
    kept, log = plain.run(run_id)
    return (run_id, kept.workflow, line(kept, log, index), copied(kept.saves[index][3]))


def diff(plain: PlainStore, run_id: str, old: int | None, new: int | None, other: str | None) -> str:
    """What differs between two checkpoints."""
    first = at(plain, run_id, {} if old is None else {"step": old})
    second = at(plain, other or run_id, {} if new is None else {"step": new})
    return exact(difference(first[3], second[3]))


def size(plain: PlainStore, run_id: str) -> tuple[int, list[str], int]:
    """How many records, the keys that are weighed, how many runs."""
    _, log = plain.run(run_id)
    state = plain.state(run_id)
    keys = list(state) if isinstance(state, dict) and all(isinstance(key, str) for key in state) else [""]
    return log.seq, sorted(keys) if log.marks else [], len(plain.logs)


def runs(
    plain: PlainStore,
    workflow: str | None = None,
    *,
    status: Any = None,
    tags: dict[str, Any] | None = None,
    starts_with: str = "",
    parent: str | None = None,
    due: bool = False,
    order: str = "created",
    newest_first: bool = True,
) -> list[tuple[Any, ...]]:
    """The runs that are wanted, in order."""
    statuses = [status] if isinstance(status, str) else status
    found = [
        run_id
        for run_id, kept in plain.kept.runs.items()
        if workflow in (None, kept.workflow)
        and (not statuses or kept.status in statuses)
        and _typed(tags or {}).items() <= _typed(kept.tags).items()
        and run_id.startswith(starts_with)
        and (parent is None or (kept.parent is not None and kept.parent[0] == parent))
        and (not due or plain.is_due(run_id))
    ]
    times = {one: (log.created_us if order == "created" else log.changed_us) for one, log in plain.logs.items()}
    found.sort(key=lambda run_id: (times[run_id], run_id), reverse=newest_first)
    return [head(plain, run_id) for run_id in found]


def _typed(tags: dict[str, Any]) -> dict[str, tuple[Any, bool]]:
    """True is not 1 here, but 1.0 is."""
    return {name: (value, isinstance(value, bool)) for name, value in tags.items()}
