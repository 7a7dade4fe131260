"""What `carry` makes of how its function ended."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keepstep.engine import rows
from keepstep.engine.calls import is_awaited
from keepstep.engine.claims import enter
from keepstep.engine.context import Engine
from keepstep.engine.looks import Outcome
from keepstep.engine.shape import Shape
from keepstep.errors import (
    BadInput,
    NoSuchRun,
    NothingToDo,
    ReadOnly,
    RunCancelled,
    RunFinished,
    RunGone,
    RunWaiting,
    Stop,
    WrongUse,
    shown,
)
from keepstep.flows.carrying import MakeHands, carry
from keepstep.flows.flow import Flow
from keepstep.flows.retrying import STORE_TROUBLE
from keepstep.flows.starting import start
from keepstep.flows.versions import Crowd
from keepstep.log.records import TagValue
from keepstep.store.base import Store as BaseStore


def refuse_function(function: Callable[..., Any], handle: str) -> None:
    """Refuse what cannot be carried."""
    if not callable(function):
        raise BadInput(f"carry() takes a function of the run, not {shown(function)}.")
    if handle == "sync" and inspect.iscoroutinefunction(function):
        raise WrongUse(
            f"{getattr(function, '__name__', 'The function')}() is a coroutine function; carry it with "
            "keepstep.open_async(), or make it a plain function."
        )


def entered_none(run_id: str, error: NothingToDo) -> Outcome:
    """The outcome when there was nothing to enter."""
    if isinstance(error, RunFinished):
        return Outcome(run_id, "finished", result=error.result)
    if isinstance(error, RunCancelled):
        return Outcome(run_id, "cancelled", error=error)
    if isinstance(error, RunWaiting):
        return Outcome(run_id, "paused" if error.gates else "sleeping", gates=error.gates, until=error.until)
    return Outcome(run_id, "running", until=getattr(error, "until", None), error=error)


async def carry_flow(
    engine: Engine,
    flow: Flow,
    run_id: str,
    given: Any,
    tags: Mapping[str, TagValue] | None,
    *,
    wait_seconds: float,
    interrupts: tuple[type[BaseException], ...],
    make_hands: MakeHands,
) -> Outcome:
    """Start a run of a flow, or go on with it, and carry it to its end or pause here."""
    try:
        await start(engine, flow, run_id, given, tags)
        claim = await enter(engine, run_id, flow.name, wait_seconds)
    except NothingToDo as error:
        return entered_none(run_id, error)
    carried = Carried(run_id, interrupts)
    try:
        await carry(flow, claim, make_hands)
    except BaseException as error:  # noqa: BLE001 - `take` raises what is not its business
        carried.take(error)
    return await carried.outcome(engine)


def check_flow(flow: Any) -> Flow:
    """Refuse what is no flow, or one that cannot be carried."""
    if not isinstance(flow, Flow):
        raise BadInput(f"{shown(flow)} is no flow; make one with keepstep.Flow(...) or @keepstep.flow(...).")
    flow.check()
    return flow


def crowd_of(flows: Sequence[Flow], handle: str, store: BaseStore) -> Crowd:
    """The flows of a worker; refuse what cannot be carried."""
    if not flows:
        raise BadInput("worker() takes the flows to carry; give at least one.")
    if store.read_only:
        raise ReadOnly(f"A worker writes, and {store.url} is open for reading only. Open it without read_only=True.")
    for flow in flows:
        for function in check_flow(flow).functions:
            if handle == "sync" and is_awaited(function):
                raise WrongUse(
                    f"{getattr(function, '__name__', 'a step')}() of flow {flow.name!r} is a coroutine function; open "
                    "the store with keepstep.open_async(), or make it a plain function."
                )
    return Crowd(flows)


def refuse_of_flows(**given: Any) -> None:
    """Refuse what is said of flows only."""
    for what, value in given.items():
        if value is not None:
            raise BadInput(f"{what}= is for flows; make the function one with @keepstep.flow(...).")


def refuse_beside_flow(flow: Flow, **given: tuple[Any, Any]) -> None:
    """Refuse what a flow says itself."""
    for what, (value, default) in given.items():
        if value not in (default, flow.name if what == "workflow" else default):
            raise BadInput(f"{what}= is said by flow {flow.name!r} itself; leave it out.")


def hands_interrupts(interrupts: tuple[type[BaseException], ...]) -> tuple[type[BaseException], ...]:
    """What leaves a flow's run `ready`: trouble of the store as well."""
    return (*interrupts, *STORE_TROUBLE)


@dataclass
class Carried:
    """A run that was entered and left."""

    run_id: str
    interrupts: tuple[type[BaseException], ...]
    error: BaseException | None = None

    def take(self, error: BaseException) -> None:
        """Keep what left the block; raises it again when it is to stop the whole program."""
        if not isinstance(error, (Exception, Stop, *self.interrupts)):
            raise error
        self.error = error

    async def outcome(self, engine: Engine) -> Outcome:
        """How the run was left."""
        try:
            look = await rows.look(engine, Shape(engine.registry), self.run_id)
        except NoSuchRun:
            return Outcome(self.run_id, "deleted", error=self.error or RunGone(self.run_id))
        return Outcome(self.run_id, look.status, look.result, look.gates, look.until, self.error)
