"""The right to write a run: entering, taking over, and leaving it.

Entry either claims the run or raises without writing anything; which of the two is one function of the run's row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from keepstep.engine import rows, waking
from keepstep.engine.bodies import error_told, given_body, to_body
from keepstep.engine.context import Engine
from keepstep.engine.decisions import decide, prepare
from keepstep.engine.moments import moment
from keepstep.engine.work import Work
from keepstep.engine.writer import Writer
from keepstep.errors import (
    ClaimLost,
    NoSuchRun,
    NotAllowed,
    RollbackUnderWay,
    RunCancelled,
    RunFinished,
    RunGone,
    RunHeld,
    WrongWorkflow,
)  # fmt: skip
from keepstep.log.fold import Fields, Fold, thaw
from keepstep.log.grow import Draft
from keepstep.log.records import Cancelled, Claimed, Failed, Finished, Opened, Record, Released, Reopened, Saved
from keepstep.store.base import Append, View

POLL_SECONDS_FIRST = 0.02
POLL_SECONDS_MOST = 0.5


class Farewell(Protocol):
    """A checkpoint on its way; called with the row, it gives its record."""

    def __call__(self, row: Fields) -> list[Draft]: ...

    def rewind(self) -> None: ...


@dataclass
class Claim:
    """A run that this process holds."""

    engine: Engine
    run_id: str
    writer: Writer
    work: Work
    open: bool = True
    step: str | None = None
    """The flow's step that is being carried out: a checkpoint in the middle of it comes back to it."""
    timeout: tuple[float, int] | None = None
    """How long that step may take in seconds, and when that is over in microseconds."""
    farewell: Callable[[], Farewell] | None = None
    """Makes the checkpoint that is written together with the end."""

    @property
    def row(self) -> Fields:
        """The row as it will be once everything pending is written."""
        return self.writer.row


@dataclass(frozen=True)
class Entry:
    """How a run is to be entered."""

    owner: str
    workflow: str | None
    """Creates the run if there is none; None only continues."""
    reason: str = "entered"
    is_left: Callable[[str, int], bool] = lambda run_id, epoch: False
    """Whether a run that is in this owner's name, at this epoch, is nobody's here."""

    def rule(self, view: View) -> Sequence[Draft]:
        """Claim the run, or raise what stands against it."""
        if view.row is None:
            return self._create(view)
        if self.workflow is not None and view.row.workflow != self.workflow:
            raise WrongWorkflow(view.run_id, view.row.workflow, self.workflow)
        if view.row.undoing:
            raise RollbackUnderWay(view.run_id)
        if view.row.owner == self.owner and self.is_left(view.run_id, view.row.epoch):
            return [Draft(Claimed(owner=self.owner, epoch=view.row.epoch + 1, reason=self.reason))]
        return [*_make_ready(view, view.row), self._claimed(view, view.row)]

    def _create(self, view: View) -> list[Draft]:
        if self.workflow is None:
            raise NoSuchRun(view.run_id)
        incarnation, epoch = view.buried
        opened = Opened(workflow=self.workflow, incarnation=incarnation + 1, epoch=epoch)
        return [Draft(opened), Draft(Claimed(owner=self.owner, epoch=epoch + 1, reason=self.reason))]

    def _claimed(self, view: View, row: Fold) -> Draft:
        if row.status == "running":
            return Draft(Claimed(owner=self.owner, epoch=row.epoch + 1, reason="took_over", before=row.owner))
        return Draft(Claimed(owner=self.owner, epoch=row.epoch + 1, reason=self.reason))


def _make_ready(view: View, row: Fold) -> list[Draft]:
    """What has to be written before a claim; raises when the run cannot be claimed."""
    if row.status == "finished":
        raise RunFinished(view.run_id)
    if row.status == "cancelled":
        raise RunCancelled(view.run_id)
    if row.status == "failed":
        return [Draft(Reopened())]
    if row.status == "running" and view.holder is not None and view.holder.stands:
        raise RunHeld(view.run_id, view.holder.owner, moment(view.holder.until_us))
    if row.status in ("paused", "sleeping"):
        return waking.wake(view, row)
    return []


async def enter(engine: Engine, run_id: str, workflow: str | None, wait_seconds: float = 0.0) -> Claim:
    """Claim a run, creating it if a workflow is given; waits for its holder at most so long."""
    owner = await engine.ownership.owner()
    entry = Entry(owner, workflow, is_left=partial(engine.ownership.is_left, entering=1))
    deadline_us = engine.clock.now_us() + int(wait_seconds * 1e6)
    pause = POLL_SECONDS_FIRST
    while True:
        try:
            return await _enter_once(engine, run_id, entry)
        except RunHeld:
            left = (deadline_us - engine.clock.now_us()) / 1e6
            if left <= 0:
                raise
            await engine.runtime.pause(min(pause, left))
            pause = min(pause * 1.5, POLL_SECONDS_MOST)
        except RunFinished:
            raise RunFinished(run_id, await rows.result(engine, run_id)) from None
        except RunCancelled:
            raise await _cancelled(engine, run_id) from None


async def _cancelled(engine: Engine, run_id: str) -> RunCancelled:
    row = (await engine.store.view(run_id)).row
    if row is None or not row.cancel:
        return RunCancelled(run_id)
    told = await rows.request(engine, run_id, row)
    return RunCancelled(run_id, told["reason"], told["by"])


def give_back(view: View, made: Append) -> list[Draft]:
    """Release a run whose claimer has left before the claim was written."""
    return _left(view, made.row.owner, made.row.epoch, "interrupted")


def _left(view: View, owner: str | None, epoch: int, reason: str) -> list[Draft]:
    """Release a run that this owner holds in name only, under this claim."""
    row = view.row
    if row is None or (row.status, row.owner, row.epoch) != ("running", owner, epoch):
        return []
    released = [Draft(Released(reason=reason))]
    return [*released, Draft(Cancelled())] if row.cancel else released


async def _enter_once(engine: Engine, run_id: str, entry: Entry) -> Claim:
    with engine.ownership.entering(run_id):
        committed = await decide(engine, run_id, entry.rule, holder=True, take_back=give_back)
        assert committed.append is not None
        claim = hold(engine, run_id, committed.append.row)
    if claim.row.cancel:  # its holder died before it saw the request
        await release(claim, "left")
        raise RunCancelled(run_id)
    return claim


async def claim_due(
    engine: Engine, workflows: Sequence[str] | None, limit: int, fits: Callable[[View], bool] = lambda view: True
) -> list[Claim]:
    """Claim runs that are ready, due, or left behind by an owner that is gone, as far as they fit."""
    entry = Entry(await engine.ownership.owner(), None, "worker")

    def decide_one(view: View) -> Append | None:
        if not fits(view):
            return None
        return prepare(view, entry.rule(view), engine.ids.batch(), holder=True)

    with engine.ownership.entering(None):
        committed = await engine.store.claim(workflows, limit, decide_one)
        claims = [hold(engine, one.append.run_id, one.append.row) for one in committed if one.append is not None]
    for claim in claims:
        if claim.row.cancel:
            await release(claim, "left")
    return [claim for claim in claims if claim.open]


def giving_back(owner: str, epoch: int, batch: bytes) -> Callable[[View], Append | None]:
    """The decision that releases a run which this owner holds in name only."""

    def decide_one(view: View) -> Append | None:
        return prepare(view, _left(view, owner, epoch, "left_behind"), batch)

    return decide_one


def hold(engine: Engine, run_id: str, row: Fields) -> Claim:
    """The claim on a run that was just claimed."""
    claim = _claim(engine, run_id, row)
    engine.ownership.hold(claim.writer)
    return claim


def _claim(engine: Engine, run_id: str, row: Fields) -> Claim:
    work = Work(run_id, engine.runtime.mutex())
    return Claim(engine, run_id, Writer(engine, run_id, thaw(row), work.stop), work)


def claim_of(engine: Engine, writer: Writer) -> Claim:
    """The claim for which a writer writes."""
    return Claim(engine, writer.run_id, writer, Work(writer.run_id, engine.runtime.mutex()))


async def catch_up(claim: Claim) -> None:
    """Somebody else has written: find out whether this claim may go on. Every call of the run begins with this."""
    await claim.writer.catch_up()
    if claim.work.latch is not None:
        raise claim.work.latch
    if claim.writer.lost is not None:
        raise claim.writer.lost


async def finish(claim: Claim, result: Any) -> None:
    """End the run with a result."""
    body = given_body(claim.engine, result, "result")
    if claim.writer.stale:
        await catch_up(claim)
    last = None if claim.farewell is None else claim.farewell()

    def end(row: Fields) -> list[Draft]:
        saved = [] if last is None else last(row)
        step = next((one.record.step for one in saved if isinstance(one.record, Saved)), row.step or 0)
        return [*saved, Draft(Finished(step=step), body)]

    await claim.writer.write(end, None if last is None else last.rewind)
    close(claim)


async def fail(claim: Claim, error: BaseException, reason: str = "raised", asking: Sequence[Draft] = ()) -> None:
    """End the run with an error; `asking` is written with it."""
    body, name = to_body(claim.engine, error_told(claim.engine, error), "error"), type(error).__qualname__
    try:
        await claim.writer.write(
            lambda row: [*asking, *_end(row, Failed(step=row.step or 0, error=name, reason=reason), body)]
        )
    finally:
        close(claim)


async def release(claim: Claim, reason: str) -> None:
    """Give the claim back. A claim that is lost already has nothing to give."""
    if not claim.open:
        return
    try:
        await claim.writer.write(lambda row: _end(row, Released(reason=reason)))
    except (ClaimLost, RunGone, NotAllowed):
        pass
    finally:
        close(claim)


def _end(row: Fields, record: Record, body: bytes | None = None) -> list[Draft]:
    """How a claim ends, unless somebody has asked for the run to be cancelled."""
    return [Draft(Cancelled())] if row.cancel else [Draft(record, body)]


def close(claim: Claim) -> None:
    """This handle writes no more."""
    claim.open = False
    claim.writer.shut()
    claim.engine.ownership.drop(claim.writer)
