"""Saving: under a claim, and the plain pair's way, one append without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keepstep.codec.framer import Framer
from keepstep.engine.checkpoints import SaveDraft, Tape, check_names, cut, load
from keepstep.engine.claims import Claim
from keepstep.engine.context import Engine
from keepstep.engine.decisions import MovedOnError, decide
from keepstep.engine.moments import moment
from keepstep.engine.shape import Shape
from keepstep.errors import BadInput, NoSuchRun, RollbackUnderWay, RunHeld, WrongWorkflow, shown
from keepstep.log.fold import Fold
from keepstep.log.grow import Draft
from keepstep.log.records import Opened, Released
from keepstep.store.base import View

RETRIES_MAX = 100
"""How often a claimless save may find that somebody else saved in between."""


async def save(
    claim: Claim, shape: Shape, tape: Tape, state: Any, *, next: str | None, step: int | None, label: str | None
) -> int:
    """Save a checkpoint of a run that is held; returns its step."""
    engine = claim.engine
    check(engine, next=next, step=step, label=label)
    parts = cut(engine, shape, state, tape)
    draft = SaveDraft(tape, parts, claim.run_id, next=next, step=step, label=label, version=shape.version, state=state)
    await claim.writer.write(draft, draft.rewind)
    return draft.step


def check(engine: Engine, *, next: str | None, step: int | None, label: str | None) -> None:
    """Refuse what cannot stand in a checkpoint."""
    check_names(engine.limits, next=next, label=label)
    if step is not None and (isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 1 << 53):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"step= is {shown(step)}; give a whole number from 0 up.")


async def save_unclaimed(
    engine: Engine,
    shape: Shape,
    run_id: str,
    state: Any,
    *,
    workflow: str | None,
    next: str | None,
    step: int | None,
    label: str | None,
) -> int:
    """Save a checkpoint without holding the run; refused while somebody does. Returns its step."""
    check(engine, next=next, step=step, label=label)
    check_names(engine.limits, workflow=workflow)
    for _ in range(RETRIES_MAX):
        at, tape = await _tape(engine, run_id)
        parts = cut(engine, shape, state, tape)
        draft = SaveDraft(tape, parts, run_id, next=next, step=step, label=label, version=shape.version)
        rule = _Unclaimed(at, draft, workflow)
        try:
            committed = await decide(engine, run_id, rule)
        except MovedOnError:
            engine.tapes.forget(run_id)
            continue
        assert committed.append is not None
        row = committed.append.row
        engine.tapes.keep(run_id, (row.incarnation, row.saved), tape)
        return draft.step
    raise RunHeld(run_id, "others who save all the time")


async def _tape(engine: Engine, run_id: str) -> tuple[tuple[int, int], Tape]:
    """Where the run stands: from memory if known, read otherwise."""
    found = engine.tapes.find(run_id)
    if found is not None:
        return found
    row = (await engine.store.view(run_id)).row
    if row is None:
        return (0, 0), Tape(Framer.fresh())
    if not row.saved:
        return (row.incarnation, 0), Tape(Framer.fresh())
    return (row.incarnation, row.saved), (await load(engine, run_id, row.saved)).tape()


class _Unclaimed:
    """The rule of a claimless save."""

    def __init__(self, at: tuple[int, int], draft: SaveDraft, workflow: str | None) -> None:
        self._at = at
        self._draft = draft
        self._workflow = workflow

    def __call__(self, view: View) -> Sequence[Draft]:
        self._draft.rewind()  # a decision may be made twice
        if view.row is None:
            return self._create(view)
        if self._workflow is not None and self._workflow != view.row.workflow:
            raise WrongWorkflow(view.run_id, view.row.workflow, self._workflow)
        if view.row.undoing:
            raise RollbackUnderWay(view.run_id)
        before = _free(view, view.row)
        if (view.row.incarnation, view.row.saved) != self._at:
            raise MovedOnError(view.run_id)
        return [*before, *self._draft(view.row, ahead=len(before))]

    def _create(self, view: View) -> list[Draft]:
        if self._workflow is None:
            raise NoSuchRun(view.run_id)
        if self._at != (0, 0):
            raise MovedOnError(view.run_id)
        incarnation, epoch = view.buried
        opened = Opened(workflow=self._workflow, incarnation=incarnation + 1, epoch=epoch)
        return [Draft(opened), *self._draft(Fold(), ahead=1)]


def _free(view: View, row: Fold) -> list[Draft]:
    """What takes the claim of a dead owner away; raises when a living one has it."""
    if row.status != "running":
        return []
    if view.holder is not None and view.holder.stands:
        raise RunHeld(view.run_id, view.holder.owner, moment(view.holder.until_us))
    return [Draft(Released(reason="owner_gone"))]
