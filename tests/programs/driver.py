"""Lets a story happen to a program: two workers, people, crashes; and after each event sees that all is well."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

import keepstep
from keepstep.api.places import store_for
from keepstep.runtime.inline import drive
from keepstep.testing import FaultyStore, SimulatedCrash
from tests.handles import act
from tests.places import LEASE_SECONDS, Place
from tests.programs import laws
from tests.programs.agent import Agent
from tests.programs.judge import Judge
from tests.programs.language import REVERSIBLE, SECONDS, Program
from tests.programs.model import FIRST, Model
from tests.programs.story import (
    Answer,
    Cancel,
    Enter,
    Event,
    Fork,
    Kill,
    Luck,
    RollBack,
    Send,
    Settle,
    Story,
    Turn,
    Who,
)  # fmt: skip
from tests.programs.world import Deed, Interrupt, World

RUNS_MAX = 4
ROUNDS_MAX = 60
"""A run that is not at its end after so many visits, with everything answered, is going round in circles."""
ENDED = ("finished", "cancelled")


class FreezingStore(FaultyStore):
    """It can also let its process stop before an operation."""

    freeze: Callable[[], None] = lambda: None

    async def _do(self, operation: Any) -> Any:
        if self.how == cast(Any, "freeze") and not self.dead and self.operations + 1 == self.at:
            self.at = 0
            self.freeze()
        return await super()._do(operation)


@dataclass
class Worker:
    """A process that has the store open."""

    store: Any
    faulty: FreezingStore
    heart: Any
    busy: bool = False
    run_id: str = ""
    """Where it is."""
    beats: bool = False
    """Whether it renews its lease when it wakes."""


class Driver:
    """One story of one program."""

    def __init__(self, kind: str, mode: str, folder: Path, program: Program) -> None:
        self.place = Place(kind, mode, folder)
        self.observer = keepstep.open(self.place.url, clock=self.place.clock)
        self.program = program
        self.model = Model(program, self.place.clock)
        self.judge = Judge(self.observer, self.model)
        self.world = self.model.world = self.judge.world = World(self.judge, self)
        self._workers: dict[Who, Worker] = {}
        self._number = 0
        """Of the last answer or message."""

    def play(self, story: Story) -> None:
        """Everything happens, and then all runs come to their ends."""
        for event in story:
            self.happen(event)
            self._check()
        self._come_to_an_end()

    def close(self) -> None:
        """Nobody works any more."""
        self.place.close()
        self.observer.close()

    def happen(self, event: Event) -> None:
        """One event."""
        match event:
            case Enter(who, index, luck):
                self._visit(who, self._run(index) or FIRST, luck)
            case RollBack(who, index, to, luck):
                self._roll_back(who, self._run(index), to, luck)
            case Fork():
                self._fork(event)
            case Answer(index, how):
                gates = self.observer.inbox().items
                if gates:
                    self._answer(gates[index % len(gates)], how)
            case Settle(index, again):
                self._settle(index, again=again)
            case Send(index, name):
                self._send(self._run(index), name)
            case Turn(seconds):
                self._turn(seconds)
            case Cancel(index):
                self._cancel_from_outside(self._run(index))
            case Kill(who):
                self._bury(who)

    def _run(self, index: int) -> str | None:
        """One of the runs that there are."""
        runs = [one for one in self.model.runs if self._status(one)]
        return runs[index % len(runs)] if runs else None

    def _status(self, run_id: str) -> str | None:
        with suppress(keepstep.NoSuchRun):
            return self.observer.look(run_id).status
        return None

    # --- workers -------------------------------------------------------------------------------------------------

    def _worker(self, who: Who) -> Worker:
        if who not in self._workers:
            faulty = FreezingStore(store_for(self.place.url, self.place.clock, read_only=False))
            store = self.place.open(cast(Any, faulty))
            act(store, lambda engine: engine.ownership.owner())
            heart: Any = store._session._engine.ownership._heart
            heart.stop()  # from here on it beats when it is told
            self._workers[who] = Worker(store, faulty, heart)
            faulty.freeze = lambda: self.freeze(who, self._workers[who].run_id)
        return self._workers[who]

    @contextmanager
    def _at_work(self, who: Who, run_id: str, luck: Luck) -> Iterator[Worker]:
        """While a worker does something with bad luck; what that excuses is swallowed."""
        worker = self._worker(who)
        worker.busy, worker.run_id, worker.beats = True, run_id, luck.beats
        self.world.fates[who] = deque(luck.fates)
        faulty, fault = worker.faulty, luck.fault
        faulty.at = 0 if fault is None else faulty.operations + fault.at
        if fault is not None:
            faulty.when, faulty.how = fault.when, cast(Any, fault.how)
        try:
            yield worker
        except (keepstep.NothingToDo, keepstep.EffectInDoubt, keepstep.RollbackUnderWay, keepstep.UndoFailed):
            pass
        except keepstep.ArgumentsChanged:
            assert self.model.runs[run_id].salt, "only the arguments of a fork change"
        except SimulatedCrash:
            assert faulty.dead
        except Interrupt:
            assert any(fate.then == "is interrupted" for fate in luck.fates)
        except keepstep.ClaimLost:
            assert self._can_freeze(luck)
        except keepstep.StoreError:
            assert fault is not None
            assert fault.how in ("fail", "full")
        finally:
            worker.busy = False
            faulty.at = 0
            self.world.fates.pop(who)
            if faulty.dead:
                self._bury(who)
            elif not self.world.still:
                self._beat()

    def _can_freeze(self, luck: Luck) -> bool:
        is_fault = luck.fault is not None and luck.fault.how == "freeze"
        return is_fault or any(fate.then == "freezes" for fate in luck.fates)

    def _visit(self, who: Who, run_id: str, luck: Luck) -> None:
        """A worker goes on with a run."""
        with self._at_work(who, run_id, luck) as worker, worker.store.run(run_id, "w") as run:
            look = self.observer.look(run_id)
            self.model.on_line(run_id, look.line)
            if look.epoch == run.epoch:  # otherwise it was overtaken before it could look
                self.model.entered(run_id, run.step, run.state)
            Agent(self.world, self.model, who, run, look.line).carry_out()

    def is_dead(self, who: Who) -> bool:
        """Whether a process does nothing more."""
        return self._workers[who].faulty.dead

    def die(self, who: Who) -> None:
        """A process dies inside a tool; what is open is closed when it is buried."""
        self._workers[who].faulty.dead = True

    def _bury(self, who: Who) -> None:
        worker = self._workers.pop(who, None)
        if worker is not None:
            self.place.kill(worker.store)
            drive(worker.faulty.store.close())
            if not self.world.still:
                self._beat()

    def freeze(self, who: Who, run_id: str) -> None:
        """A process stops for longer than its lease; meanwhile the other one goes on with its run, if it can."""
        if not self.world.stand_still(who):
            return
        try:
            self.place.clock.turn(LEASE_SECONDS + 1)
            other: Who = "b" if who == "a" else "a"
            if other not in self._workers or not self._workers[other].busy:
                self._visit(other, run_id, Luck())
            if self._workers[who].beats:
                self.place.beat(self._workers[who].store)
        finally:
            self.world.move(who)

    def _beat(self) -> None:
        """Whoever is there renews its lease, and gives back what it holds in name only."""
        for worker in list(self._workers.values()):
            if not worker.busy and not worker.faulty.dead:
                self.place.beat(worker.store)

    def _turn(self, seconds: float) -> None:
        self.place.clock.turn(seconds)
        self._beat()

    # --- people --------------------------------------------------------------------------------------------------

    def cancel(self, run_id: str) -> None:
        """Somebody wants a run to stop, while it is held."""
        self._cancel_from_outside(run_id)

    def _cancel_from_outside(self, run_id: str | None) -> None:
        if run_id is not None:
            with suppress(keepstep.NotAllowed):  # it is finished
                self.observer.cancel(run_id, by="ada")

    def _send(self, run_id: str | None, name: str) -> None:
        if run_id is None or self._status(run_id) in ENDED:
            return
        self._number += 1
        assert self.observer.send(run_id, name, self._number, id=f"message {self._number}")
        assert not self.observer.send(run_id, name, "again", id=f"message {self._number}")
        self.model.runs[run_id].sent.setdefault(name, []).append(self._number)

    def _answer(self, gate: keepstep.GateLook, how: str) -> None:
        """A person answers; whoever comes second is told."""
        answer = self._answer_to(gate, how)
        try:
            self.observer.answer(gate.id, answer, by="mia")
        except keepstep.GateExpired:
            assert gate.until is not None
            assert gate.until.timestamp() * 1e6 <= self.place.clock.now_us()
            return
        with pytest.raises(keepstep.AlreadyAnswered, match="mia"):
            self.observer.answer(gate.id, answer, by="eve")
        self._note_answer(gate, answer)

    def _answer_to(self, gate: keepstep.GateLook, how: str) -> dict[str, Any]:
        if gate.about == "question":
            self._number += 1
            return {"value": self._number}
        if gate.about == "approval":
            other = {"arguments": {"amount": 2}} if how == "other" else {}
            return {"approve": how != "no", **other}
        found = self.world.find(gate.details["idempotency_key"])
        if how == "no":
            return {"outcome": "fail"}
        if how == "other" or found is None:
            return {"outcome": "not_happened"}
        return {"outcome": "happened", "result": found.result}

    def _note_answer(self, gate: keepstep.GateLook, answer: dict[str, Any]) -> None:
        run = self.model.runs[gate.run_id]
        if gate.about == "question":
            run.answers.setdefault(gate.prompt.split()[1], []).append(answer["value"])
        elif gate.about == "approval":
            (run.yeses if answer["approve"] else run.noes)[gate.details["arguments"][0][0]] += 1
        elif answer["outcome"] == "not_happened":
            self._consent(gate.run_id, gate.details["arguments"], gate.details["idempotency_key"])

    def _consent(self, run_id: str, arguments: Any, key: str | None) -> None:
        """Somebody wants something to be done again, though it has happened."""
        if self.world.find(key) is not None:
            self.world.consents[Deed(run_id, arguments[0][0])] += 1

    def _settle(self, index: int, *, again: bool) -> None:
        """An operator tells about one of all doubts."""
        doubts = [(run_id, one) for run_id in self.model.runs if self._status(run_id) for one in self._doubts(run_id)]
        if not doubts:
            return
        run_id, one = doubts[index % len(doubts)]
        found = self.world.find(one.idempotency_key)
        happened = found is not None and not again
        with suppress(keepstep.NotInDoubt):
            result = found.result if found is not None and happened else None
            self.observer.settle(run_id, one.key, happened=happened, result=result, by="mia")
            if not happened:
                self._consent(run_id, one.arguments, one.idempotency_key)

    def _doubts(self, run_id: str) -> list[keepstep.EffectLook]:
        """What may be in doubt; of what a fork inherited only the store knows whether it is.

        A doubt that two keys share is told about under the key that began, or two people could say two things of it.
        """
        effects = self.observer.effects(run_id)
        keys = Counter(one.idempotency_key for one in effects)
        return [
            one
            for one in effects
            if (one.status in ("began", "doubted") or (one.status == "inherited" and one.result is None))
            and not (one.key.endswith("again") and keys[one.idempotency_key] > 1)
        ]

    # --- going back ----------------------------------------------------------------------------------------------

    def _roll_back(self, who: Who, run_id: str | None, to: int, luck: Luck) -> None:
        """A run goes back; what cannot be undone is kept, and about doubts the truth is told."""
        steps = [] if run_id is None else self._steps(run_id)
        if run_id is None or not steps:
            return
        run = self.model.runs[run_id]
        target = steps[to % len(steps)] if run.undoing is None else run.undoing
        run.going_to = target
        with self._at_work(who, run_id, luck) as worker, suppress(keepstep.RollbackRefused):  # an effect is in doubt
            self._go_back(who, worker, run_id, target)
        run.undoing = target if laws.has_begun_to_go_back(self.observer, run_id) else None
        self.model.on_line(run_id, self.observer.look(run_id).line)

    def _go_back(self, who: Who, worker: Worker, run_id: str, to: int) -> None:
        plan = self.observer.plan_rollback(run_id, to)
        keep = [one.key for one in plan.items if one.action == "cannot" and "nothing undoes" in (one.why or "")]
        doubts = [one.key for one in plan.items if one.action == "doubt"]
        undone = [one.key for one in self.observer.effects(run_id) if one.key in doubts and self._is_undone(one)]
        not_undone = [one for one in doubts if one not in undone]
        agent = Agent(self.world, self.model, who, None, 0)
        undo = dict.fromkeys((f"Agent.{tool}" for tool in REVERSIBLE), agent.undo)
        report = worker.store.rollback(run_id, to, keep=keep, undo=undo, undone=undone, not_undone=not_undone)
        outcomes = {one.key: one.outcome for one in report.items}
        assert outcomes == {key: "kept" if key in keep else "undone" for key in outcomes}

    def _is_undone(self, effect: keepstep.EffectLook) -> bool:
        found = self.world.find(effect.idempotency_key)
        return found is not None and found.undone is not None

    def _steps(self, run_id: str) -> list[int]:
        """The steps of the run's line."""
        now = self.observer.look(run_id).step or 0
        return sorted({one.step for one in self.observer.history(run_id).items if one.step <= now})

    # --- forks ---------------------------------------------------------------------------------------------------

    def _fork(self, event: Fork) -> None:
        """A run gets a child; if that fails, it is tried again."""
        parent_id = self._run(event.run)
        steps = [] if parent_id is None else self._steps(parent_id)
        if parent_id is None or not steps or len(self.model.runs) >= RUNS_MAX:
            return
        at = steps[event.at % len(steps)]
        child_id = f"{parent_id}+{len(self.model.runs)}"
        salt = len(self.model.runs) if event.edited else None
        how: dict[str, Any] = {"id": child_id, "effects": event.effects}
        if salt is not None:
            how["edits"] = {"salt": salt}
        inherited = self.judge.inherited(parent_id, event.effects)
        self.model.found(parent_id, at, self.observer.at(parent_id, step=at).state)
        with self._at_work(event.who, parent_id, Luck(fault=_not_frozen(event.luck))) as worker:
            worker.store.fork(parent_id, at, **how)
        self.observer.fork(parent_id, at, **how)
        child = self.model.forked(child_id, parent_id, at, salt)
        child.inherited, child.fresh = inherited, event.effects == "fresh"

    # --- the end -------------------------------------------------------------------------------------------------

    def _come_to_an_end(self) -> None:
        """Everybody does what he can, and nothing fails any more."""
        for _ in range(ROUNDS_MAX):
            open_runs = [one for one in list(self.model.runs) if self._status(one) not in ENDED]
            if not open_runs:
                break
            for run_id in open_runs:
                self._help(run_id)
                self._check()
        assert not open_runs, f"{open_runs} go round in circles"
        for run_id in self.model.runs:
            look = self.observer.look(run_id)
            if look.status == "finished":
                assert look.step == len(self.program)
                assert look.result == look.state["done"]
                assert [look.state] == self.model.runs[run_id].states[len(self.program)]

    def _help(self, run_id: str) -> None:
        if self._status(run_id) is not None:
            if self.model.runs[run_id].undoing is not None:
                self._settle_all(run_id)
                self._roll_back("a", run_id, 0, Luck())
                return
            for gate in self.observer.inbox().items:
                self._answer(gate, "yes")
            self._settle_all(run_id)
            for name in "xy":
                run = self.model.runs[run_id]
                if len(run.sent.get(name, [])) - len(run.received.get(name, [])) < run.line:
                    self._send(run_id, name)
            self._turn(SECONDS + 1)
        self._visit("a", run_id, Luck())

    def _settle_all(self, run_id: str) -> None:
        for one in self._doubts(run_id):
            found = self.world.find(one.idempotency_key)
            with suppress(keepstep.NotInDoubt):
                result = None if found is None else found.result
                self.observer.settle(run_id, one.key, happened=found is not None, result=result, by="mia")

    def _check(self) -> None:
        """All is well."""
        if self.world.broken:
            raise self.world.broken[0]
        for run_id in self.model.runs:
            if self._status(run_id) is not None:
                laws.check(self.observer, run_id)
                self.judge.check(run_id)


def _not_frozen(luck: Luck) -> Any:
    return None if luck.fault is None or luck.fault.how == "freeze" else luck.fault
