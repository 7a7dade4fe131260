"""An open store, sync."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

from keepstep.api.carrying import (
    Carried,
    carry_flow,
    check_flow,
    crowd_of,
    entered_none,
    hands_interrupts,
    refuse_beside_flow,
    refuse_function,
    refuse_of_flows,
)
from keepstep.api.handle import Handle
from keepstep.api.hands import PlainHands
from keepstep.api.places import copy_path
from keepstep.api.run import Run
from keepstep.api.session import Session
from keepstep.codec.difference import Change
from keepstep.engine import (
    cancelling,
    forks,
    gates,
    history,
    ledger,
    mail,
    marks,
    reopening,
    retention,
    rollback,
    rows,
    saves,
    verify,
)
from keepstep.engine.checkpoints import Tape
from keepstep.engine.claims import Claim
from keepstep.engine.entry import Entered, enter_due, enter_run
from keepstep.engine.forks import Edits
from keepstep.engine.inheritance import Inheritance
from keepstep.engine.looks import (
    Checkpoint,
    CheckpointHead,
    EffectLook,
    GateLook,
    Look,
    Outcome,
    PageOf,
    RollbackPlan,
    RunHead,
    Size,
    Verification,
)  # fmt: skip
from keepstep.engine.shape import Lift, Shape
from keepstep.errors import NothingToDo
from keepstep.flows.flow import Flow
from keepstep.flows.starting import engine_of, start
from keepstep.flows.versions import shape_of
from keepstep.log.records import TagValue
from keepstep.runtime.durations import Duration, seconds
from keepstep.runtime.inline import drive
from keepstep.worker.options import options
from keepstep.worker.shift import Shift
from keepstep.worker.threads import Threads
from keepstep.worker.workers import Worker


class Block:
    """What `store.run(...)` gives: a `with` block for one run."""

    def __init__(self, enter: Callable[[], Run]) -> None:
        self._enter = enter
        self._run: Run | None = None

    def __enter__(self) -> Run:
        self._run = self._enter()
        return self._run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        assert self._run is not None
        return self._run.__exit__(kind, error, traceback)


class Store:
    """Where runs live. Open it with `keepstep.open`; it can be used from many threads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    # --- a run to work on --------------------------------------------------------------------------------------

    def run(
        self,
        run_id: str,
        workflow: str | None = None,
        *,
        wait: Duration = 0,
        state: type[Any] | None = None,
        version: int = 1,
        lift: Mapping[int, Lift] | None = None,
    ) -> Block:
        """Open or continue a run, as a `with` block: claimed, exclusive, and kept alive until the block ends.

        Only with `workflow=` is a run created. Entry raises, without claiming, when there is nothing to do:
        `RunFinished` (with `.result`), `RunCancelled`, `RunWaiting`, `RunHeld` (`wait="1m"` waits for its holder). An
        Exception that leaves the block makes the run `failed`; opening it again goes on from its last checkpoint.
        """
        return Block(lambda: self.claim(run_id, workflow, wait=wait, state=state, version=version, lift=lift))

    def claim(
        self,
        run_id: str,
        workflow: str | None = None,
        *,
        wait: Duration = 0,
        state: type[Any] | None = None,
        version: int = 1,
        lift: Mapping[int, Lift] | None = None,
    ) -> Run:
        """The same as `run`, where a block does not fit; end it with `run.close()`."""
        shape = self._shape(state, version, lift)
        wait_seconds = seconds(wait, "wait")
        return self._handle(shape, drive(enter_run(self._session.engine, shape, run_id, workflow, wait_seconds)))

    def claim_due(
        self,
        workflow: str | None = None,
        *,
        limit: int = 1,
        state: type[Any] | None = None,
        version: int = 1,
        lift: Mapping[int, Lift] | None = None,
    ) -> list[Run]:
        """Claim runs that are ready, due, or left behind by a dead owner; each ends with `run.close()`."""
        rows.check_page(limit)
        shape = self._shape(state, version, lift)
        return [self._handle(shape, one) for one in drive(enter_due(self._session.engine, shape, workflow, limit))]

    def carry(
        self,
        function: Callable[[Run], Any] | Flow,
        run_id: str,
        workflow: str | None = None,
        *,
        input: Any = None,
        tags: Mapping[str, TagValue] | None = None,
        wait: Duration = 0,
        state: type[Any] | None = None,
        version: int = 1,
        lift: Mapping[int, Lift] | None = None,
    ) -> Outcome:
        """Run `function(run)` and say how the run was left, without exceptions to sort.

        What the function returns becomes the result (its last state, if it returns None), unless it called
        `run.finish`. A flow is carried to its end or pause; `input` and `tags` are what its run is started with, if
        there is none yet.
        """
        if isinstance(function, Flow):
            refuse_beside_flow(
                function, workflow=(workflow, None), state=(state, None), version=(version, 1), lift=(lift, None)
            )
            return drive(self._carry_flow(function, run_id, input, tags, wait))
        refuse_of_flows(input=input, tags=tags)
        refuse_function(function, "sync")
        try:
            run = self.claim(run_id, workflow, wait=wait, state=state, version=version, lift=lift)
        except NothingToDo as error:
            return entered_none(run_id, error)
        carried = Carried(run_id, self._session.options.interrupts)
        try:
            with run:
                value = function(run)
                if run.is_open:
                    run.finish(run.state if value is None else value)
        except BaseException as error:  # noqa: BLE001 - `take` raises what is not its business
            carried.take(error)
        return drive(carried.outcome(self._session.engine))

    # --- flows --------------------------------------------------------------------------------------------------

    def start(
        self, flow: Flow, input: Any = None, *, id: str | None = None, tags: Mapping[str, TagValue] | None = None
    ) -> Handle:
        """Start a run of a flow, for a worker to carry; durable when this returns.

        With an id of its own the call can be repeated safely: the same input gives the same run, other input is
        `RunExists`.
        """
        run_id = check_flow(flow).new_id() if id is None else id
        engine = engine_of(self._session.engine, flow)
        drive(start(engine, flow, run_id, input, tags))
        return self.handle(run_id, flow)

    def handle(self, run_id: str, flow: Flow | None = None) -> Handle:
        """A handle of a run that somebody else carries; the flow knows its state's type."""
        engine = self._session.engine
        rows.check_id(engine.limits, run_id)
        if flow is not None:
            engine = engine_of(engine, check_flow(flow))
        return Handle(run_id, engine, Shape(engine.registry) if flow is None else shape_of(flow, engine.registry))

    def worker(
        self,
        *flows: Flow,
        concurrency: int = 8,
        poll: Duration = "1s",
        grace: Duration = "30s",
        deaths: int = 5,
        alive: str | os.PathLike[str] | None = None,
    ) -> Worker:
        """Carry runs of these flows beside the program, as a `with` block: ready, due, left behind.

        `concurrency` at once. It is woken by changes, and looks every `poll`. When the block ends, running steps may
        end within `grace`; what is held then is given back. A run that ended its worker `deaths` times without a new
        checkpoint is failed. `alive` is a file to touch.
        """
        how = options(concurrency=concurrency, poll=poll, grace=grace, deaths=deaths, alive=alive)
        crowd = crowd_of(flows, "sync", self._session.store)
        crew = Threads()
        return Worker(Shift(lambda: self._session.engine, crowd, how, crew, self._hands))

    def reopen(self, run_id: str, *, by: str | None = None, reason: str | None = None) -> None:
        """Bring a failed run back: it is ready, and goes on from its last checkpoint."""
        drive(reopening.reopen(self._session.engine, run_id, reason=reason, by=by))

    # --- the plain pair ----------------------------------------------------------------------------------------

    def save(
        self,
        run_id: str,
        state: Any,
        next: str | None = None,
        *,
        step: int | None = None,
        workflow: str | None = None,
        label: str | None = None,
        version: int = 1,
    ) -> int:
        """Save a checkpoint without a claim, in one append; refused while somebody holds the run. Returns its step."""
        rows.check_id(self._session.engine.limits, run_id)
        shape = self._shape(None, version, None)
        return drive(
            saves.save_unclaimed(
                self._session.engine, shape, run_id, state, workflow=workflow, next=next, step=step, label=label
            )
        )

    def load(
        self,
        run_id: str,
        *,
        state: type[Any] | None = None,
        version: int = 1,
        lift: Mapping[int, Lift] | None = None,
    ) -> Checkpoint | None:
        """The current checkpoint of a run; None when there is no such run, or nothing saved in it."""
        return drive(history.current(self._session.engine, self._shape(state, version, lift), run_id))

    # --- looking -----------------------------------------------------------------------------------------------

    def look(
        self,
        run_id: str,
        *,
        state: type[Any] | None = None,
        version: int = 1,
        lift: Mapping[int, Lift] | None = None,
    ) -> Look:
        """A run as it stands, without claiming it."""
        return drive(rows.look(self._session.engine, self._shape(state, version, lift), run_id))

    def history(
        self, run_id: str, *, newest_first: bool = True, limit: int = 50, cursor: str | None = None
    ) -> PageOf[CheckpointHead]:
        """A page of the run's checkpoints, of all lines, without their states."""
        return drive(
            history.history(self._session.engine, run_id, newest_first=newest_first, limit=limit, cursor=cursor)
        )

    def at(
        self,
        run_id: str,
        *,
        step: int | None = None,
        seq: int | None = None,
        label: str | None = None,
        state: type[Any] | None = None,
        version: int = 1,
        lift: Mapping[int, Lift] | None = None,
    ) -> Checkpoint:
        """One checkpoint with its state: by step (of the current line), by seq, by label, or the current one."""
        shape = self._shape(state, version, lift)
        return drive(history.at(self._session.engine, shape, run_id, step=step, seq=seq, label=label))

    def diff(
        self, run_id: str, old: int | None = None, new: int | None = None, *, other: str | None = None
    ) -> list[Change]:
        """What changed in the state from one step to another; with `other=`, to a step of another run."""
        return drive(history.diff(self._session.engine, self._shape(None, 1, None), run_id, old, new, other=other))

    def runs(
        self,
        workflow: str | None = None,
        *,
        status: str | Sequence[str] | None = None,
        tags: Mapping[str, TagValue] | None = None,
        starts_with: str = "",
        order: Literal["created", "changed"] = "created",
        newest_first: bool = True,
        limit: int = 50,
        cursor: str | None = None,
    ) -> PageOf[RunHead]:
        """A page of runs, by when they were created or last changed status; `page.next` is the next cursor."""
        return drive(
            rows.runs(
                self._session.engine,
                workflow=workflow,
                status=status,
                tags=tags,
                starts_with=starts_with,
                order=order,
                newest_first=newest_first,
                limit=limit,
                cursor=cursor,
            )
        )

    def due(self, workflow: str | None = None, *, limit: int = 50, cursor: str | None = None) -> PageOf[RunHead]:
        """What a worker would take: runs that are ready, waiters whose time has come, runs whose owner is gone."""
        return drive(
            rows.runs(
                self._session.engine,
                workflow=workflow,
                due=True,
                order="changed",
                newest_first=False,
                limit=limit,
                cursor=cursor,
            )
        )

    def children(self, run_id: str, *, limit: int = 50, cursor: str | None = None) -> PageOf[RunHead]:
        """The forks of a run."""
        rows.check_id(self._session.engine.limits, run_id)
        return drive(rows.runs(self._session.engine, parent=run_id, limit=limit, cursor=cursor))

    def changes(self, timeout: Duration | None = None) -> Iterator[int]:
        """A number each time something has changed, by whatever process; ends after so long without a change."""
        quiet = None if timeout is None else seconds(timeout, "timeout")
        engine = self._session.engine
        seen = drive(engine.store.changes(None, 0))
        while (found := drive(rows.changed(engine, seen, quiet))) is not None:
            yield (seen := found)

    # --- acting ------------------------------------------------------------------------------------------------

    def fork(
        self,
        run_id: str,
        at: int | None = None,
        edits: Edits | None = None,
        id: str | None = None,
        *,
        effects: Inheritance = "ask",
        state: type[Any] | None = None,
        version: int = 1,
        lift: Mapping[int, Lift] | None = None,
    ) -> Look:
        """Start a new run from a checkpoint of another, with edits: values by key, `REMOVE`, or a function.

        The new run is `ready`, and nobody holds it. With an id of its own the call can be repeated safely.

        What the parent's `run.once` has done is not done again: in the fork the same call gets the parent's result;
        with other arguments a person is asked first (`effects="ask"`), or it gets that result all the same ("reuse").
        With "fresh" the fork knows nothing of its parent's effects.
        """
        shape = self._shape(state, version, lift)
        target = drive(
            forks.fork(self._session.engine, shape, run_id, step=at, edits=edits, new_id=id, effects=effects)
        )
        return drive(rows.look(self._session.engine, shape, target))

    def tag(self, run_id: str, tags: Mapping[str, TagValue | None] | None = None, /, **more: TagValue | None) -> None:
        """Set searchable marks on any run; None takes one away."""
        drive(marks.tag_unclaimed(self._session.engine, run_id, marks.together(tags, more)))

    def note(self, run_id: str, value: Any) -> None:
        """Remark on any run."""
        drive(marks.note_unclaimed(self._session.engine, run_id, value))

    def cancel(
        self, run_id: str, *, reason: str | None = None, by: str | None = None
    ) -> Literal["cancelled", "requested"]:
        """Stop a run for good: `"cancelled"` when nobody held it, otherwise `"requested"`, and its holder ends it.

        The holder is told by its next heartbeat: its next call raises `Cancelled`, which leaves its block; an async
        block is interrupted in whatever it awaits. What is under way is recorded first. A second request changes
        nothing; a run that finished meanwhile is `NotAllowed`.
        """
        return drive(cancelling.cancel(self._session.engine, run_id, reason=reason, by=by))

    def delete(self, run_id: str, *, force: bool = False) -> bool:
        """Erase a run; False when there was none. A run that somebody holds is refused unless forced."""
        return drive(retention.delete(self._session.engine, run_id, force=force))

    # --- questions to people -----------------------------------------------------------------------------------

    def inbox(self, workflow: str | None = None, *, limit: int = 50, cursor: str | None = None) -> PageOf[GateLook]:
        """Every open question of every run, those first that have waited longest; a page has so many runs."""
        return drive(gates.inbox(self._session.engine, workflow=workflow, limit=limit, cursor=cursor))

    def gate(self, gate_id: str) -> GateLook:
        """One question, open or over."""
        return drive(gates.look(self._session.engine, gate_id))

    def answer(self, gate_id: str, value: Any, *, by: str | None = None) -> GateLook:
        """Answer a question; the run goes on with it. The first valid answer wins: see `AlreadyAnswered`."""
        return drive(gates.answer(self._session.engine, gate_id, value, by))

    def send(self, run_id: str, name: str, value: Any = None, *, id: str | None = None) -> bool:
        """Leave a message for a run, which `run.receive` gets, also when it comes to that later.

        With an id of its own it can be sent again safely; False when it was there already.
        """
        return drive(mail.send(self._session.engine, run_id, name, value, id))

    # --- the ledger --------------------------------------------------------------------------------------------

    def effects(self, run_id: str) -> list[EffectLook]:
        """The run's ledger: every call to the outside, in the order in which they began."""
        return drive(ledger.effects(self._session.engine, run_id))

    def settle(self, run_id: str, key: str, *, happened: bool, result: Any = None, by: str | None = None) -> None:
        """Tell whether an effect in doubt happened, and with what result; the run goes on accordingly."""
        drive(ledger.settle(self._session.engine, run_id, key, happened=happened, result=result, by=by))

    def mark(
        self,
        run_id: str,
        key: str,
        *,
        tool: str,
        target: str | None = None,
        reversible: bool = False,
        workflow: str = "marked",
    ) -> bool:
        """Note that a tool was run elsewhere; `run.once` with that key will not run it. Creates the run.

        False when it was noted before. Refused for a key under which an effect began.
        """
        return drive(
            ledger.mark(
                self._session.engine, run_id, key, tool=tool, target=target, reversible=reversible, workflow=workflow
            )
        )

    # --- going back --------------------------------------------------------------------------------------------

    def plan_rollback(
        self,
        run_id: str,
        to: int,
        *,
        keep: Sequence[str] = (),
        undo: Mapping[str, Callable[..., Any]] | None = None,
    ) -> RollbackPlan:
        """What going back to a step would undo, newest first, and what it cannot. Nothing is done."""
        return drive(rollback.plan(self._session.engine, run_id, to, keep=keep, undo=undo))

    def rollback(
        self,
        run_id: str,
        to: int,
        *,
        keep: Sequence[str] = (),
        undo: Mapping[str, Callable[..., Any]] | None = None,
        undone: Sequence[str] = (),
        not_undone: Sequence[str] = (),
    ) -> RollbackPlan:
        """Undo the effects since a step, newest first, and let the run continue from there, on a new line.

        An effect that nothing undoes stops it before anything is done (`RollbackRefused`), unless `keep` names its key.
        `undo` gives functions by tool, where the tools do not say what undoes them. Cut off, it goes on when it is
        called again. Nobody knows whether an undo that was cut off was done, unless it is idempotent or can be asked
        (`reconcile`): `undone` names the effects of which you know that it was, `not_undone` those of which it was not.
        """
        return drive(
            rollback.rollback(
                self._session.engine, run_id, to, keep=keep, undo=undo, undone=undone, not_undone=not_undone
            )
        )

    # --- the store itself --------------------------------------------------------------------------------------

    def verify(self, run_id: str, *, expect: str | None = None) -> Verification:
        """Check everything stored of a run; `expect` is a digest kept elsewhere (`look(...).digest`)."""
        return drive(verify.verify(self._session.engine, run_id, expect))

    def size(self, run_id: str | None = None) -> Size:
        """What a run weighs, by key of its state; without an id, what the store weighs."""
        return drive(retention.size(self._session.engine, run_id))

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Write a consistent copy of the store to a new place, while it is in use."""
        drive(self._session.engine.store.backup(copy_path(target, self.url)))

    def close(self) -> None:
        """Release what is held and let go of the store. Twice is fine."""
        drive(self._session.close())

    @property
    def url(self) -> str:
        """Where the store is."""
        return self._session.store.url

    @property
    def read_only(self) -> bool:
        """Nothing can be written through this store."""
        return self._session.store.read_only

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<keepstep.Store {self.url}>"

    def _shape(self, state: type[Any] | None, version: int, lift: Mapping[int, Lift] | None) -> Shape:
        return Shape.of(self._session.options.registry, state, version, lift)

    def _handle(self, shape: Shape, entered: Entered) -> Run:
        return Run(entered.claim, shape, entered.tape, self._session.options.interrupts)

    async def _carry_flow(self, flow: Flow, run_id: str, given: Any, tags: Any, wait: Duration) -> Outcome:
        return await carry_flow(
            engine_of(self._session.engine, flow),
            flow,
            run_id,
            given,
            tags,
            wait_seconds=seconds(wait, "wait"),
            interrupts=self._session.options.interrupts,
            make_hands=self._hands,
        )

    def _hands(self, claim: Claim, shape: Shape, tape: Tape) -> PlainHands:
        return PlainHands(Run(claim, shape, tape, hands_interrupts(self._session.options.interrupts)))
