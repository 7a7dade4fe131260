"""What a store does, told with plain dicts: every public call that writes, and the errors it raises instead.

It has no frames, no chain, no batches and no commits. Who calls is an owner, by number; handles have numbers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import keepstep
from keepstep.codec.difference import difference
from tests.crash.plain_model import Kept
from tests.model.plain_runs import Handle, Log, PlainRuns, Save
from tests.model.values import copied, is_storable
from tests.places import LEASE_SECONDS

Edits = Mapping[str, Any] | Callable[[Any], Any] | None


class Interrupt(Exception):
    """Leaves a run ready, because every store is opened so."""


CARRIED = 0
"""The number of the handle that a carried function has."""


class Work(NamedTuple):
    """What a carried function does."""

    states: list[Any]
    ending: type[Exception] | None
    result: Any


class PlainStore(PlainRuns):
    """A whole store."""

    # --- entering ------------------------------------------------------------------------------------------------

    def claim(self, owner: int, number: int, run_id: str, workflow: str | None) -> tuple[Any, ...]:
        """Claim a run, creating it if a workflow is given."""
        _check_names(workflow)
        if run_id not in self.kept.runs:
            if workflow is None:
                raise keepstep.NoSuchRun(run_id)
            self._create(run_id, workflow)
        else:
            self._make_ready(owner, run_id, workflow)
        return self._hold(owner, number, run_id)

    def claim_due(self, owner: int, first_number: int, workflow: str | None, limit: int) -> list[tuple[Any, ...]]:
        """Claim what a worker may claim, the longest unchanged first."""
        wanted = [one for one, kept in self.kept.runs.items() if workflow in (None, kept.workflow) and self.is_due(one)]
        claimed: list[tuple[Any, ...]] = []
        for number, run_id in enumerate(self.by_change(wanted)[:limit], first_number):
            if self.kept.runs[run_id].status == "running":
                self.logs[run_id].deaths += 1
            claimed.append(self._hold(owner, number, run_id))
        return claimed

    def _make_ready(self, owner: int, run_id: str, workflow: str | None) -> None:
        kept, log = self.run(run_id)
        if workflow not in (None, kept.workflow):
            raise keepstep.WrongWorkflow(run_id, kept.workflow, str(workflow))
        if self.is_left(run_id, owner):
            return
        if kept.status == "finished":
            raise keepstep.RunFinished(run_id, kept.result)
        if kept.status == "failed":
            log.seq += 1
            log.deaths = 0
        if kept.status == "running":
            if self.is_held(run_id):
                raise keepstep.RunHeld(run_id, "somebody")
            log.deaths += 1

    def _hold(self, owner: int, number: int, run_id: str) -> tuple[Any, ...]:
        kept, log = self.run(run_id)
        log.seq += 1
        log.epoch += 1
        log.owner = owner
        self._go(run_id, "running")
        self.handles[number] = Handle(owner, run_id, kept.incarnation, log.epoch)
        return (run_id, log.epoch, log.deaths, kept.workflow, kept.tags, *self.where(run_id))

    # --- under a claim -------------------------------------------------------------------------------------------

    def put(self, number: int, save: Save) -> tuple[Any, ...]:
        """Save a run that is held."""
        handle = self._open(number)
        _check_save(save)
        kept, _ = self._written(handle)
        _check_grows(kept, save.step, handle.run_id)
        self._add(handle.run_id, save, handle.epoch)
        return self.where(handle.run_id)

    def mark(self, number: int, tags: dict[str, Any]) -> None:
        """Tag a run that is held."""
        handle = self._open(number)
        self._written(handle)
        self._tag(handle.run_id, tags)

    def remark(self, number: int, value: Any) -> None:
        """Note something on a run that is held."""
        handle = self._open(number)
        _check_storable(value)
        kept, log = self._written(handle)
        kept.note = copied(value)
        log.seq += 1

    def finish(self, number: int, result: Any) -> None:
        """End a run with a result."""
        handle = self._open(number)
        _check_storable(result)
        kept, _ = self._written(handle)
        handle.closed = True
        kept.result = copied(result)
        self._end(handle.run_id, "finished")

    def leave(self, number: int, *, failed: bool = False) -> None:
        """A block ends, or a handle is closed. Whoever has lost the run has nothing to give back."""
        handle = self.handles[number]
        had = self.has(handle) and handle.lost is None
        handle.closed = True
        if had:
            self._end(handle.run_id, "failed" if failed else "ready")

    def carry(self, owner: int, run_id: str, workflow: str | None, work: Work) -> tuple[str, Any, str | None]:
        """A function saves some states, and then raises or returns; the outcome says what became of the run."""
        try:
            self.claim(owner, CARRIED, run_id, workflow)
        except keepstep.RunFinished as error:
            return ("finished", error.result, None)
        except keepstep.RunHeld:
            return ("running", None, "RunHeld")
        ending = work.ending
        try:
            for state in work.states:
                self.put(CARRIED, Save(state))
        except keepstep.CannotStore:
            ending = keepstep.CannotStore
        if ending is None:
            self.finish(CARRIED, self.state(run_id) if work.result is None else work.result)
        else:
            self.leave(CARRIED, failed=ending is not Interrupt)
        del self.handles[CARRIED]
        kept, _ = self.run(run_id)
        return (kept.status, kept.result, None if ending is None else ending.__name__)

    def ways_of_carry(self, owner: int, run_id: str, workflow: str | None, work: Work) -> Iterator[PlainStore]:
        """What else may be left when the store fails on the way: so many steps, and the run held, free or failed."""
        yield self
        for count in range(len(work.states) + 1):
            for failed in (None, False, True):
                other = self.copy()
                try:
                    other.claim(owner, CARRIED, run_id, workflow)
                    for state in work.states[:count]:
                        other.put(CARRIED, Save(state))
                except keepstep.KeepstepError:
                    return
                if failed is not None:
                    other.leave(CARRIED, failed=failed)
                yield other

    def _open(self, number: int) -> Handle:
        handle = self.handles[number]
        if handle.closed:
            raise keepstep.WrongUse("the handle is closed")
        if handle.lost is not None:
            raise handle.lost(handle.run_id)
        return handle

    def _written(self, handle: Handle) -> tuple[Kept, Log]:
        if not self.has(handle):
            kept = self.kept.runs.get(handle.run_id)
            gone = kept is None or kept.incarnation != handle.incarnation
            handle.lost = keepstep.RunGone if gone else keepstep.ClaimLost
            raise handle.lost(handle.run_id)
        return self.run(handle.run_id)

    # --- without a claim -----------------------------------------------------------------------------------------

    def save(self, run_id: str, save: Save, workflow: str | None) -> int | None:
        """The plain pair's save."""
        _check_names(workflow)
        _check_save(save)
        if run_id not in self.kept.runs:
            if workflow is None:
                raise keepstep.NoSuchRun(run_id)
            self._create(run_id, workflow)
        kept, _ = self.run(run_id)
        if workflow not in (None, kept.workflow):
            raise keepstep.WrongWorkflow(run_id, kept.workflow, str(workflow))
        if self.is_held(run_id):
            raise keepstep.RunHeld(run_id, "somebody")
        _check_grows(kept, save.step, run_id)
        if kept.status in ("finished", "failed"):
            raise keepstep.NotAllowed("it has ended", run_id)
        if kept.status == "running":
            self._end(run_id, "ready")
        self._add(run_id, save, 0)
        return kept.step

    def tag(self, run_id: str, tags: dict[str, Any]) -> None:
        """Tag any run."""
        self.run(run_id)
        self._tag(run_id, tags)

    def note(self, run_id: str, value: Any) -> None:
        """Note something on any run."""
        _check_storable(value)
        kept, log = self.run(run_id)
        kept.note = copied(value)
        log.seq += 1

    def fork(self, run_id: str, at: int | None, edits: Edits, new_id: str) -> None:
        """A new run from a checkpoint; the same again is fine."""
        parent, log = self.run(run_id)
        steps = [one[0] for one in parent.saves]
        if not steps or (at is not None and at not in steps):
            raise keepstep.NoSuchCheckpoint("no such step", run_id)
        index = steps.index(at) if at is not None else -1
        step, next, _, state = parent.saves[index]
        state = _edited(copied(state), edits)
        _check_storable(state)
        if new_id in self.kept.runs:
            self._check_same_fork(new_id, run_id, log.marks[index][0], state)
            return
        self._create(new_id, parent.workflow, parent=(run_id, step), tags=dict(parent.tags))
        self.logs[new_id].parent_seq = log.marks[index][0]
        self._add(new_id, Save(state, next, step), 0)
        self.logs[new_id].seq += 1 if parent.tags else 0

    def delete(self, run_id: str, *, force: bool) -> bool:
        """Erase a run."""
        if run_id not in self.kept.runs:
            return False
        if self.is_held(run_id) and not force:
            raise keepstep.RunHeld(run_id, "somebody")
        self.epochs[run_id] = self.logs.pop(run_id).epoch
        del self.kept.runs[run_id]
        return True

    def _check_same_fork(self, new_id: str, run_id: str, seq: int, state: Any) -> None:
        kept, log = self.run(new_id)
        parent = None if kept.parent is None else (kept.parent[0], log.parent_seq)
        if parent != (run_id, seq) or difference(kept.saves[0][3], state):
            raise keepstep.RunExists("it is another one", new_id)

    # --- owners --------------------------------------------------------------------------------------------------

    def beat(self, number: int) -> None:
        """An owner renews its lease, and gives back what is in its name and in nobody's hands."""
        self.owners[number].until_us = self.clock.now_us() + int(LEASE_SECONDS * 1e6)
        for run_id in self.logs:
            if self.is_left(run_id, number):
                self._end(run_id, "ready")

    def close(self, number: int) -> None:
        """An owner leaves in good order."""
        for one, handle in self.handles.items():
            if handle.owner == number:
                self.leave(one)
        self.die(number)
        self.owners[number].until_us = 0

    def die(self, number: int) -> None:
        """An owner is no more; what it held stays in its name."""
        self.owners[number].dead = True
        self.handles = {one: handle for one, handle in self.handles.items() if handle.owner != number}


def _edited(state: Any, edits: Edits) -> Any:
    if edits is None:
        return state
    if callable(edits):
        return edits(state)
    if not isinstance(state, dict):
        if edits:
            raise keepstep.BadInput("no fields to edit")
        return state
    return {key: copied(one) for key, one in {**state, **edits}.items() if one is not keepstep.REMOVE}


def _check_names(*names: str | None) -> None:
    if "" in names:
        raise keepstep.BadInput("a name is empty")


def _check_save(save: Save) -> None:
    _check_names(save.next, save.label)
    if save.step is not None and (type(save.step) is not int or save.step < 0):
        raise keepstep.BadInput("step= is no number")
    _check_storable(save.state)


def _check_storable(value: Any) -> None:
    if not is_storable(value):
        raise keepstep.CannotStore("no stored form")


def _check_grows(kept: Kept, step: int | None, run_id: str) -> None:
    if step is not None and kept.step is not None and step <= kept.step:
        raise keepstep.NotAllowed("steps grow", run_id)
