"""Scripts of public calls, which a store and the plain model go through side by side.

A step of a script says what it does to the model (`after`: one model, or several if it writes several times), and does
it to a world of open stores. Whoever has lost its handle in a crash claims the run again before it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import keepstep
from tests.crash.plain_model import Kept, Model
from tests.places import Place


class World:
    """The processes that use one store: each has it open, and holds runs."""

    def __init__(self, place: Place, faulty: dict[str, Any] | None = None) -> None:
        self.place = place
        self._faulty = dict(faulty or {})
        """Who gets a store with a fault in it, when it opens the store for the first time."""
        self._stores: dict[str, keepstep.Store] = {}
        self._handles: dict[tuple[str, str], keepstep.Run] = {}
        self._epochs: dict[str, int] = {}

    def store(self, who: str) -> keepstep.Store:
        """The open store of a process."""
        if who not in self._stores:
            self._stores[who] = self.place.open(self._faulty.pop(who, None))
        return self._stores[who]

    def hold(self, who: str, run: keepstep.Run) -> None:
        """A run was claimed; its epoch is larger than any before, in all its lives."""
        assert run.epoch > self._epochs.get(run.id, 0)
        self._epochs[run.id] = run.epoch
        self._handles[who, run.id] = run

    def has(self, who: str, run_id: str) -> bool:
        """Whether a process has a handle of this run."""
        return (who, run_id) in self._handles

    def handle(self, who: str, run_id: str) -> keepstep.Run:
        """The handle of a process, which claims the run again if it lost it in a crash."""
        if not self.has(who, run_id):
            self.hold(who, self.store(who).claim(run_id))
        return self._handles[who, run_id]

    def drop(self, who: str, run_id: str) -> None:
        """The handle is closed."""
        self._handles.pop((who, run_id), None)

    def freeze(self, who: str) -> None:
        """The process has stopped for longer than its lease."""
        self.place.freeze(self.store(who))

    def kill(self, who: str) -> None:
        """The process is dead."""
        if who in self._stores:
            self.place.kill(self._stores.pop(who))
        for key in [key for key in self._handles if key[0] == who]:
            del self._handles[key]

    def kill_all(self) -> None:
        """Everybody is dead."""
        for who in list(self._stores):
            self.kill(who)


@dataclass
class Step:
    """One call."""

    who: str = field(default="a", kw_only=True)

    def after(self, model: Model) -> Iterator[Model]:
        """The model after each of the call's writes, in order."""
        yield model

    def interrupted(self, model: Model) -> Iterator[Model]:
        """What else may stand there when the call was answered with an error in between."""
        yield from ()

    def do(self, world: World) -> None:
        """Make the call."""
        raise NotImplementedError


@dataclass
class Save(Step):
    """The plain pair: save without a claim, load."""

    run_id: str
    state: Any
    next: str | None = None
    step: int | None = None
    label: str | None = None
    workflow: str | None = "w"

    def after(self, model: Model) -> Iterator[Model]:
        kept = model.ensure(self.run_id, self.workflow)
        _add(kept, self.state, self.next, self.step, self.label)
        kept.status = "ready"  # a dead holder is put off
        yield model

    def do(self, world: World) -> None:
        store = world.store(self.who)
        step = store.save(self.run_id, self.state, self.next, step=self.step, workflow=self.workflow, label=self.label)
        loaded = store.load(self.run_id)
        assert loaded is not None
        assert (loaded.step, loaded.next, loaded.label, loaded.state) == (step, self.next, self.label, self.state)


@dataclass
class Enter(Step):
    """Claim a run, creating it."""

    run_id: str
    workflow: str | None = "w"

    def after(self, model: Model) -> Iterator[Model]:
        kept = model.ensure(self.run_id, self.workflow)
        kept.status, kept.result = "running", None
        yield model

    def interrupted(self, model: Model) -> Iterator[Model]:
        kept = model.ensure(self.run_id, self.workflow)
        kept.status, kept.result = "ready", None  # claimed, its state not read, and given back
        yield model

    def do(self, world: World) -> None:
        world.hold(self.who, world.store(self.who).claim(self.run_id, self.workflow))


@dataclass
class Put(Step):
    """Save a run that is held."""

    run_id: str
    state: Any
    next: str | None = None
    step: int | None = None
    label: str | None = None

    def after(self, model: Model) -> Iterator[Model]:
        kept = _held(model, self.run_id)
        _add(kept, self.state, self.next, self.step, self.label)
        yield model

    def do(self, world: World) -> None:
        run = world.handle(self.who, self.run_id)
        step = run.save(self.state, self.next, step=self.step, label=self.label)
        assert (run.step, run.next, run.label, run.state) == (step, self.next, self.label, self.state)


@dataclass
class Note(Step):
    """Remark on a run that is held."""

    run_id: str
    value: Any

    def after(self, model: Model) -> Iterator[Model]:
        _held(model, self.run_id).note = self.value
        yield model

    def do(self, world: World) -> None:
        world.handle(self.who, self.run_id).note(self.value)


@dataclass
class Tag(Step):
    """Tag a run that is held."""

    run_id: str
    tags: dict[str, Any]

    def after(self, model: Model) -> Iterator[Model]:
        _tag(_held(model, self.run_id), self.tags)
        yield model

    def do(self, world: World) -> None:
        world.handle(self.who, self.run_id).tag(self.tags)


@dataclass
class TagUnheld(Step):
    """Tag a run from outside, whoever holds it."""

    run_id: str
    tags: dict[str, Any]

    def after(self, model: Model) -> Iterator[Model]:
        _tag(model.runs[self.run_id], self.tags)
        yield model

    def do(self, world: World) -> None:
        world.store(self.who).tag(self.run_id, self.tags)


@dataclass
class Finish(Step):
    """End a run that is held."""

    run_id: str
    result: Any

    def after(self, model: Model) -> Iterator[Model]:
        kept = _held(model, self.run_id)
        kept.status, kept.result = "finished", self.result
        yield model

    def do(self, world: World) -> None:
        world.handle(self.who, self.run_id).finish(self.result)
        world.drop(self.who, self.run_id)


@dataclass
class Leave(Step):
    """Give a claim back."""

    run_id: str

    def after(self, model: Model) -> Iterator[Model]:
        _held(model, self.run_id).status = "ready"
        yield model

    def do(self, world: World) -> None:
        run = world.handle(self.who, self.run_id)
        world.drop(self.who, self.run_id)
        run.close()  # if it fails, the handle is closed all the same, and the run can be entered again


@dataclass
class Fail(Step):
    """A block that is left by an exception."""

    run_id: str
    workflow: str | None = "w"

    def after(self, model: Model) -> Iterator[Model]:
        yield from Enter(self.run_id, self.workflow).after(model.copy())
        kept = model.ensure(self.run_id, self.workflow)
        kept.status, kept.result = "failed", None
        yield model

    def interrupted(self, model: Model) -> Iterator[Model]:
        yield from Enter(self.run_id, self.workflow).interrupted(model)

    def do(self, world: World) -> None:
        try:
            with world.store(self.who).run(self.run_id, self.workflow) as run:
                world.hold(self.who, run)
                world.drop(self.who, self.run_id)
                raise OSError("the tool broke")
        except OSError as error:
            if notes := getattr(error, "__notes__", None):  # it could not be recorded, and says so
                raise keepstep.StoreFailed(notes[0]) from error


@dataclass
class Fork(Step):
    """Fork a run."""

    run_id: str
    at: int
    edits: dict[str, Any]
    new_id: str

    def after(self, model: Model) -> Iterator[Model]:
        if self.new_id not in model.runs:
            parent = model.runs[self.run_id]
            step, next_step, _, state = next(one for one in parent.saves if one[0] == self.at)
            fork = model.create(self.new_id, parent.workflow, tags=dict(parent.tags), parent=(self.run_id, step))
            fork.saves.append((step, next_step, None, {**state, **self.edits}))
        yield model

    def do(self, world: World) -> None:
        look = world.store(self.who).fork(self.run_id, self.at, self.edits, id=self.new_id)
        assert (look.run_id, look.status) == (self.new_id, "ready")


@dataclass
class Delete(Step):
    """Erase a run."""

    run_id: str
    force: bool = False

    def after(self, model: Model) -> Iterator[Model]:
        model.runs.pop(self.run_id, None)
        yield model

    def do(self, world: World) -> None:
        world.store(self.who).delete(self.run_id, force=self.force)
        world.drop(self.who, self.run_id)


@dataclass
class ClaimDue(Step):
    """Claim whatever a worker may claim."""

    workflow: str = "w"

    def after(self, model: Model) -> Iterator[Model]:
        for kept in model.runs.values():
            if kept.workflow == self.workflow and kept.status in ("ready", "running"):
                kept.status = "running"
        yield model

    def interrupted(self, model: Model) -> Iterator[Model]:
        yield from _given_back(model, [run for run in model.runs.values() if run.workflow == self.workflow])

    def do(self, world: World) -> None:
        for run in world.store(self.who).claim_due(self.workflow, limit=100):
            world.hold(self.who, run)


@dataclass
class Carry(Step):
    """Run a function that goes on from wherever the run is, saves up to a number, and returns."""

    run_id: str
    to: int
    workflow: str | None = "w"

    def after(self, model: Model) -> Iterator[Model]:
        kept = model.ensure(self.run_id, self.workflow)
        kept.status, kept.result = "running", None
        yield model.copy()
        while len(kept.saves) < self.to:
            _add(kept, {"n": len(kept.saves) + 1}, "again", None, None)
            yield model.copy()
        kept.status, kept.result = "finished", "carried"
        yield model

    def interrupted(self, model: Model) -> Iterator[Model]:
        for one in self.after(model):
            one.runs[self.run_id].result = None
            for status in ("ready", "failed"):  # given back, or the function's own failure is recorded
                one.runs[self.run_id].status = status
                yield one.copy()

    def do(self, world: World) -> None:
        def work(run: keepstep.Run) -> str:
            while (run.step or 0) < self.to:
                run.save({"n": (run.step or 0) + 1}, "again")
            return "carried"

        outcome = world.store(self.who).carry(work, self.run_id, self.workflow)
        if outcome.error is not None:
            raise outcome.error
        assert (outcome.status, outcome.result) == ("finished", "carried")


@dataclass
class Freeze(Step):
    """The process stops for longer than its lease."""

    def do(self, world: World) -> None:
        world.freeze(self.who)


@dataclass
class Late(Step):
    """A process that lost its claim wakes up, and every way of writing is refused."""

    run_id: str

    def do(self, world: World) -> None:
        if not world.has(self.who, self.run_id):
            return  # it died instead
        run = world.handle(self.who, self.run_id)
        for write in (lambda: run.save({"late": True}), lambda: run.finish("late"), lambda: run.note("late")):
            _refused(write)
        run.close()
        world.drop(self.who, self.run_id)


def _refused(write: Any) -> None:
    try:
        write()
    except (keepstep.ClaimLost, keepstep.RunGone):
        return
    raise AssertionError("a worker without a claim wrote")


def _given_back(model: Model, runs: list[Kept]) -> Iterator[Model]:
    """Runs that were claimed, and some of them released again, oldest first."""
    for run in runs:
        run.status = "running" if run.status in ("ready", "running") else run.status
    for run in runs:
        run.status = "ready" if run.status == "running" else run.status
        yield model.copy()


def _held(model: Model, run_id: str) -> Kept:
    kept = model.runs[run_id]
    kept.status = "running"
    return kept


def _add(kept: Kept, state: Any, next_step: str | None, step: int | None, label: str | None) -> None:
    number = step if step is not None else (kept.step or 0) + 1
    kept.saves.append((number, next_step, label, state))


def _tag(kept: Kept, tags: dict[str, Any]) -> None:
    kept.tags = {name: value for name, value in {**kept.tags, **tags}.items() if value is not None}
