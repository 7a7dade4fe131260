"""Carrying a rollback out, from its claim to its last record."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from msgspec.structs import replace

from keepstep.engine.claims import Claim, give_back, hold, release
from keepstep.engine.context import Engine
from keepstep.engine.decisions import MovedOnError, decide
from keepstep.engine.looks import RollbackPlan
from keepstep.engine.moments import moment
from keepstep.engine.rollback.end import end_of, report_of_last, stopped_at
from keepstep.engine.rollback.planning import Planned, Said, planned, refuse
from keepstep.engine.rollback.undo import undo_of
from keepstep.engine.rows import find
from keepstep.errors import Cancelled, NoSuchRun, RunCancelled, RunHeld, UndoFailed
from keepstep.log.fold import Fields, Fold
from keepstep.log.grow import Draft
from keepstep.log.lifecycle import ENDED
from keepstep.log.records import Claimed, Reopened
from keepstep.store.base import View

RETRIES_MAX = 100
"""How often a rollback may find that somebody wrote after it was planned."""


async def plan(engine: Engine, run_id: str, to: int, *, keep: Collection[str], undo: Any) -> RollbackPlan:
    """What a rollback would do, newest first; nothing is done."""
    return (await planned(engine, run_id, to, Said.of(keep=keep), undo)).plan


async def rollback(
    engine: Engine,
    run_id: str,
    to: int,
    *,
    keep: Collection[str],
    undo: Any,
    undone: Collection[str],
    not_undone: Collection[str],
) -> RollbackPlan:
    """Carry the plan out; raises `RollbackRefused` before anything is done, `UndoFailed` when it stops on the way."""
    said = Said.of(keep=keep, undone=undone, not_undone=not_undone)
    before = await _done_before(engine, run_id, to)
    if before is not None:
        return before
    for _ in range(RETRIES_MAX):
        try:
            return await _carry_out(engine, await planned(engine, run_id, to, said, undo))
        except MovedOnError:
            continue
        except Cancelled as cancelled:
            stopped = RunCancelled(run_id, cancelled.reason, cancelled.by)
            stopped.add_note("That stopped its rollback, which goes on when it is called again.")
            raise stopped from None
    raise RunHeld(run_id, "others who write all the time")


async def _done_before(engine: Engine, run_id: str, to: int) -> RollbackPlan | None:
    """The report of the same rollback, if it was the last thing that happened to the run."""
    view, row = await find(engine, run_id)
    if row.undoing or _is_held(engine, view, row):
        return None
    return await report_of_last(engine, run_id, row, to)


def _is_held(engine: Engine, view: View, row: Fold, entering: int = 0) -> bool:
    """Whether somebody has the run: an owner who stands, and who knows that he has it."""
    return view.holder is not None and view.holder.stands and not _is_left(engine, view, row, entering)


def _is_left(engine: Engine, view: View, row: Fold, entering: int) -> bool:
    """Whether the run is in this owner's name only: he could not give it back."""
    is_ours = view.holder is not None and engine.ownership.is_me(view.holder.owner)
    return is_ours and engine.ownership.is_left(view.run_id, row.epoch, entering=entering)


async def _carry_out(engine: Engine, planned: Planned) -> RollbackPlan:
    refuse(planned.plan)
    pairs = zip(planned.plan.items, planned.pasts, strict=True)
    undos = [undo_of(engine, planned, past) for item, past in pairs if item.action == "undo"]
    end = await end_of(engine, planned)
    claim = await _claim(engine, planned, undos[0].begins if undos else end.drafts)
    try:
        for number, one in enumerate(undos):
            try:
                await one.carry_out(claim, is_begun=number == 0)
            except UndoFailed as failure:
                failure.report = stopped_at(end.report, one.past.name)
                raise
        if undos:
            await claim.writer.write(end.drafts)
    finally:
        await release(claim, "left")
    return end.report


async def _claim(engine: Engine, planned: Planned, first: Callable[[Fields], list[Draft]]) -> Claim:
    """Claim the run whatever it waits for, and also when it has ended.

    The first record of the rollback is written with the claim: cut off between the two, a run that had ended would be
    anybody's to go on with.
    """
    owner, run_id = await engine.ownership.owner(), planned.plan.run_id

    def rule(view: View) -> list[Draft]:
        row = view.row
        if row is None:
            raise NoSuchRun(run_id)
        if _is_held(engine, view, row, entering=1):
            assert view.holder is not None
            raise RunHeld(run_id, view.holder.owner, moment(view.holder.until_us))
        if (row.incarnation, row.seq) != planned.at:
            raise MovedOnError(run_id)
        is_taken = row.status == "running" and not _is_left(engine, view, row, entering=1)
        reason, epoch = "took_over" if is_taken else "rollback", row.epoch + 1
        claimed = Draft(Claimed(owner=owner, epoch=epoch, reason=reason, before=row.owner))
        begins = [Draft(replace(one.record, epoch=epoch), one.body) for one in first(row)]
        return [*([Draft(Reopened(reason="rollback"))] if row.status in ENDED else []), claimed, *begins]

    with engine.ownership.entering(run_id):
        committed = await decide(engine, run_id, rule, holder=True, take_back=give_back)
        assert committed.append is not None, "a claim is written"
        return hold(engine, run_id, committed.append.row)
