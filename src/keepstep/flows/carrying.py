"""A claimed run is carried from step to step.

    begin ──► the step that is next ──► its state is saved, with the step after it ──► ...
                │  ▲                      └──► saved and finished, in one append
                │  └── tried again
                └──► raises: the run has failed; or waits: the run is given back

A step begins with the state as it is stored, each time: what one that raised has changed in it is gone. What it did
through `run.memo` and `run.once` is in the run's ledger, and is found there when it is carried out again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from keepstep.codec.framer import Framer
from keepstep.engine import claims
from keepstep.engine.checkpoints import SaveDraft, Tape, cut
from keepstep.engine.claims import Claim
from keepstep.engine.context import OverTimeError
from keepstep.engine.entry import tape_of
from keepstep.engine.shape import Shape
from keepstep.errors import NoSuchStep, StepTimedOut, TooManySteps, WrongUse, WrongVersion
from keepstep.flows.flow import Flow
from keepstep.flows.retrying import is_tried_again, wait_for_another_try
from keepstep.flows.steps import Next, Step
from keepstep.flows.versions import Migration, next_of, path_from, shape_of


class Hands(Protocol):
    """What the user's code gets of a claimed run, and the block in which it gets it."""

    async def enter(self) -> None:
        """Begin the block."""
        ...

    def handle(self, *, awaited: bool) -> Any:
        """The run's handle for a coroutine function, or for a plain one."""
        ...

    async def leave(self, error: BaseException | None) -> bool:
        """End the block; whether what leaves it ends there."""
        ...


class Told(Protocol):
    """Who watches a run being carried, and may want it to stop between two steps."""

    def begins(self, claim: Claim, step: str) -> None:
        """A step begins."""
        ...

    def raised(self, claim: Claim, step: str, error: Exception) -> None:
        """A step raised, and is tried again."""
        ...

    def stopping(self) -> bool:
        """No further step is to begin."""
        ...


class Nobody:
    """Nobody watches."""

    def begins(self, claim: Claim, step: str) -> None:
        """A step begins."""

    def raised(self, claim: Claim, step: str, error: Exception) -> None:
        """A step raised, and is tried again."""

    def stopping(self) -> bool:
        """No further step is to begin."""
        return False


MakeHands = Callable[[Claim, Shape, Tape], Hands]


async def carry(flow: Flow, claim: Claim, make_hands: MakeHands, told: Told | None = None) -> None:
    """Carry a claimed run on until it ends, waits, or is to stop. Raises what ended it otherwise."""
    path = path_from(flow, claim.row.flow_version)
    if path is None:
        await claims.release(claim, "left")
        raise WrongVersion(claim.run_id, flow.name, claim.row.flow_version or "", [flow.version])
    journey = _Journey(flow, claim, path, told or Nobody())
    hands = make_hands(claim, journey.shape, journey.tape)
    await hands.enter()
    try:
        await journey.begin(hands)
        await journey.go()
    except BaseException as error:
        if not await hands.leave(error):
            raise
    else:
        await hands.leave(None)


class _Journey:
    """One run, on its way through one flow, under one claim."""

    def __init__(self, flow: Flow, claim: Claim, path: Sequence[Migration], told: Told) -> None:
        self._flow = flow
        self._claim = claim
        self._path = path
        self._told = told
        self._mark = flow.version, flow.fingerprint
        self._registry = claim.engine.registry
        self.shape = shape_of(flow, self._registry)
        self.tape = Tape(Framer.fresh())
        self._state: Any = None
        self._hands: Hands | None = None

    @property
    def _is_lifted(self) -> bool:
        """The current checkpoint is of this version."""
        return self._claim.row.flow_version in (None, self._flow.version)

    @property
    def _reading(self) -> Shape:
        """How the stored state is read: lifted, until this version has saved one."""
        return self.shape if self._is_lifted else shape_of(self._flow, self._registry, self._path)

    async def begin(self, hands: Hands) -> None:
        """Read where the run stands."""
        self._hands = hands
        found = await tape_of(self._claim.engine, self._reading, self._claim)
        self.tape.framer, self.tape.state = found.framer, found.state
        self._state = found.state
        if not self._claim.row.saved and self._flow.whole is None:
            self._state = self.shape.made(self._claim.run_id, {})

    async def go(self) -> None:
        """From step to step."""
        if self._flow.whole is not None:
            await self._loop(self._flow.whole)
            return
        while self._claim.open and not self._told.stopping():
            step = self._step()
            value = None if step is None else await self._carried_out(step)
            if self._claim.open:
                await self._arrive(value)

    # --- a plain loop --------------------------------------------------------------------------------------------

    async def _loop(self, function: Callable[..., Any]) -> None:
        """The whole workflow is one function, which saves when it likes."""
        step = Step(self._flow.name, function)
        self._told.begins(self._claim, step.name)
        value = await self._called(step, self._handle(step))
        if self._claim.open:
            await self._finish(self.tape.state if value is None else value, None)

    # --- steps ---------------------------------------------------------------------------------------------------

    def _step(self) -> Step | None:
        """The step that is next; None when the run stands at its end."""
        row = self._claim.row
        if row.depth > self._flow.max_steps:
            raise TooManySteps(self._claim.run_id, self._flow.name, self._flow.max_steps)
        name = row.next if self._is_lifted else next_of(self._path, row.next)
        if name is None:
            if row.saved and row.flow_version is not None:
                return None
            name = self._flow.start
        step = self._flow.steps.get(name)
        if step is None:
            raise self._no_such(name)
        return step

    async def _carried_out(self, step: Step) -> Any:
        """What a step returns, tried as often as its policy allows."""
        claim = self._claim
        while True:
            self._told.begins(claim, step.name)
            claim.step = step.name
            claim.farewell = partial(self._draft, self._state, None)
            try:
                return await self._called(step, self._handle(step), self._state)
            except Exception as error:
                if not is_tried_again(claim, step, error):
                    raise
                self._told.raised(claim, step.name, error)
                claim.timeout = None
                await wait_for_another_try(claim, step, error)
            finally:
                claim.step = claim.timeout = claim.farewell = None
            self._state = self._stored()
            claim.work.begin_again()

    async def _called(self, step: Step, *args: Any) -> Any:
        engine = self._claim.engine
        if step.is_awaited and engine.runtime.name == "sync":
            raise WrongUse(
                f"{step.name}() of flow {self._flow.name!r} is a coroutine function; carry it with "
                "keepstep.open_async(), or make it a plain function."
            )
        limit = step.timeout_seconds
        if limit is not None:
            self._claim.timeout = limit, engine.clock.now_us() + int(limit * 1e6)
        called = partial(step.function, *args)
        try:
            value = await engine.runtime.call(called, limit if step.is_awaited else None)
        except OverTimeError:
            raise StepTimedOut(self._claim.run_id, step.name, limit or 0) from None
        return await value if inspect.isawaitable(value) else value

    def _handle(self, step: Step) -> Any:
        assert self._hands is not None, "a step is carried out inside the block"
        return self._hands.handle(awaited=step.is_awaited)

    def _stored(self) -> Any:
        """The state as it is stored, apart from what a step that raised has changed in it."""
        parts = self.tape.latest
        self.tape.state = None if parts is None else self._reading.read(self._claim.run_id, parts, 1)
        return self.tape.state

    # --- after a step --------------------------------------------------------------------------------------------

    async def _arrive(self, value: Any) -> None:
        """Save the state, with what the step said is next; or the end."""
        if isinstance(value, Next):
            value, self._state = value.step, value.state
        if value is None:
            await self._finish(self._state, partial(self._draft, self._state, None))
            return
        name = self._flow.named(value)
        if name is None:
            raise self._no_such(value)
        draft = self._draft(self._state, name)
        await self._claim.writer.write(draft, draft.rewind)

    async def _finish(self, result: Any, farewell: Callable[[], SaveDraft] | None) -> None:
        self._claim.farewell = farewell
        await claims.finish(self._claim, result)

    def _draft(self, state: Any, next: str | None) -> SaveDraft:
        claim = self._claim
        return SaveDraft(
            self.tape,
            cut(claim.engine, self.shape, state, self.tape),
            claim.run_id,
            next=next,
            step=None,
            label=None,
            version=self.shape.version,
            state=state,
            flow=self._mark,
        )

    def _no_such(self, step: object) -> NoSuchStep:
        return NoSuchStep(self._claim.run_id, self._flow.name, step, list(self._flow.steps))
