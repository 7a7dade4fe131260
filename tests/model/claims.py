"""Calls that claim runs, and calls of the handles that they give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import keepstep
from tests.model import told
from tests.model.arguments import FAULTS, HANDLES, LIMITS, NAMES, RUNS, STEPS, TAGS, WHO, WORKFLOWS
from tests.model.plain_runs import Save
from tests.model.plain_store import Interrupt, PlainStore, Work
from tests.model.rules import Rules
from tests.model.told import Raised, outcome
from tests.model.values import CHANGES, VALUES, Change, changed, copied

ENDINGS: dict[str, type[BaseException] | None] = {
    "close": None,
    "finish": None,
    "end of block": None,
    "error": OSError,
    "interrupt": KeyboardInterrupt,
    "stop": keepstep.Stop,
    "interrupt of the user's": Interrupt,
}


def any_handle(rules: Rules) -> bool:
    """Whether somebody has one that is open."""
    return any(not handle.closed for handle in rules.plain.handles.values())


class Claims(Rules):
    """Entering, writing and leaving."""

    @rule(who=WHO, run_id=RUNS, workflow=WORKFLOWS, wait=st.sampled_from((0, 0, 0, 1)), block=st.booleans())
    def claim(self, who, run_id, workflow, wait, block):
        """A run is claimed, as a block or not."""
        owner, number = self.pair.opened(who).number, self.pair.number()

        def real(store: keepstep.Store) -> Any:
            if block:
                run = store.run(run_id, workflow, wait=wait).__enter__()
            else:
                run = store.claim(run_id, workflow, wait=wait)
            self.pair.runs[number] = run
            return told.claimed(run)

        def ways(before: PlainStore) -> Iterable[PlainStore]:
            yield before
            claimed = before.copy()
            if not isinstance(outcome(lambda: claimed.claim(owner, number, run_id, workflow)), Raised):
                claimed.leave(number)
                yield claimed

        self.pair.do(who, real, lambda plain: plain.claim(owner, number, run_id, workflow), ways)
        self.pair.check(run_id)

    @rule(who=WHO, workflow=st.sampled_from(("w", "w", None, "v")), limit=LIMITS)
    def claim_due(self, who, workflow, limit):
        """A worker claims what it may."""
        owner, first = self.pair.opened(who).number, self.pair.number(limit)

        def real(store: keepstep.Store) -> Any:
            runs = store.claim_due(workflow, limit=limit)
            self.pair.runs.update(enumerate(runs, first))
            return [told.claimed(run) for run in runs]

        def ways(before: PlainStore) -> Iterable[PlainStore]:
            yield before
            given_back = before.copy()
            for number, _ in enumerate(given_back.claim_due(owner, first, workflow, limit), first):
                given_back.leave(number)
            yield given_back

        self.pair.do(who, real, lambda plain: plain.claim_due(owner, first, workflow, limit), ways)
        self.pair.check(*self.plain.logs)

    @rule(
        who=WHO,
        run_id=RUNS,
        workflow=WORKFLOWS,
        changes=st.lists(CHANGES, max_size=3),
        ending=st.sampled_from((None, None, OSError, Interrupt)),
        result=VALUES,
    )
    def carry(self, *, who, run_id, workflow, changes, ending, result):
        """A function goes on with the run for some steps, and returns or fails."""
        owner = self.pair.opened(who).number
        states = [self.plain.state(run_id)]
        for change in changes:
            states.append(changed(copied(states[-1]), change))
        work = Work(states[1:], ending, copied(result))

        def function(run: keepstep.Run) -> Any:
            for state in work.states:
                run.save(copied(state))
            if ending is not None:
                raise ending("on the way")
            return work.result

        def real(store: keepstep.Store) -> Any:
            outcome = store.carry(function, run_id, workflow)
            if isinstance(outcome.error, keepstep.StoreError):
                raise outcome.error  # the store failed in the function
            if notes := getattr(outcome.error, "__notes__", None):
                raise keepstep.StoreFailed(notes[0])  # the store failed when the function had
            return (outcome.status, outcome.result, None if outcome.error is None else type(outcome.error).__name__)

        self.pair.do(
            who,
            real,
            lambda plain: plain.carry(owner, run_id, workflow, work),
            lambda before: before.ways_of_carry(owner, run_id, workflow, work),
        )
        self.pair.check(run_id)

    # --- under a claim -------------------------------------------------------------------------------------------

    @precondition(any_handle)
    @rule(handle=HANDLES, change=CHANGES, next=NAMES, label=NAMES, step=STEPS, in_place=st.booleans())
    def put(self, *, handle, change, next, label, step, in_place):
        """The holder saves."""
        self._put(handle, change, Save(None, next, step, label), in_place=in_place)

    @precondition(any_handle)
    @rule(handle=HANDLES, count=st.integers(2, 40), key=st.sampled_from(("log", "nested")), is_text=st.booleans())
    def put_many(self, handle, count, key, is_text):
        """The holder saves a list that grows."""
        for number in range(count):
            if handle in self.plain.handles and (number == 0 or self.plain.has(self.plain.handles[handle])):
                value = f"entry {number} " * 10 if is_text else number
                self._put(handle, Change("append", key, 0, value), Save(None), in_place=True)

    @precondition(any_handle)
    @rule(
        handle=HANDLES, by=WHO, trouble=st.one_of(st.just("tag"), FAULTS), count=st.integers(2, 4), at=st.integers(1, 2)
    )
    def put_in_trouble(self, handle, by, trouble, count, at):
        """The holder saves a list that grows, while somebody tags the run, or the store fails."""
        who, run_id = self._holder_of(handle)
        for number in range(count):
            if trouble == "tag" and run_id in self.plain.logs:
                self.pair.do(by, lambda store: store.tag(run_id, n=1), lambda plain: plain.tag(run_id, {"n": 1}))
            elif trouble != "tag" and who in self.pair.open:
                self.pair.fail_soon(who, at, trouble)
            if handle in self.plain.handles:
                self._put(handle, Change("append", "log", 0, f"entry {number} " * 10), Save(None), in_place=False)

    def _put(self, handle, change, save, *, in_place):
        who, run_id = self._holder_of(handle)
        # One who has lost the run does not know where it stands: which of two errors is told first is left open.
        step = self.step(save.step, run_id) if self.plain.has(self.plain.handles[handle]) else None
        save = save._replace(state=changed(self.plain.state(run_id), change), step=step)
        given = copied(save.state)
        # What was changed in place and could not be saved stays changed, in its owner's hands; so it must be saved.
        if in_place and self.goes_well(who, lambda plain: plain.put(handle, save)):
            given = changed(self.pair.runs[handle].state, change)

        def real(store: keepstep.Store) -> Any:
            run = self.pair.runs[handle]
            assert run.save(given, save.next, step=save.step, label=save.label) == run.step
            return told.where(run)

        self.pair.do(who, real, lambda plain: plain.put(handle, save))
        self.pair.check(run_id)

    @precondition(any_handle)
    @rule(handle=HANDLES, tags=TAGS)
    def mark(self, handle, tags):
        """The holder tags."""
        who, run_id = self._holder_of(handle)
        self.pair.do(who, lambda _: self.pair.runs[handle].tag(tags), lambda plain: plain.mark(handle, tags))
        self.pair.check(run_id)

    @precondition(any_handle)
    @rule(handle=HANDLES, value=VALUES)
    def remark(self, handle, value):
        """The holder notes something."""
        value = copied(value)
        who, run_id = self._holder_of(handle)
        self.pair.do(who, lambda _: self.pair.runs[handle].note(value), lambda plain: plain.remark(handle, value))
        self.pair.check(run_id)

    @precondition(any_handle)
    @rule(handle=HANDLES, ending=st.sampled_from(sorted(ENDINGS)), result=VALUES)
    def leave(self, handle, ending, result):
        """The holder ends the run, or leaves it in one of the ways to leave a block."""
        who, run_id = self._holder_of(handle)
        kind, result = ENDINGS[ending], copied(result)

        def real(store: keepstep.Store) -> None:
            run = self.pair.runs[handle]
            if ending == "close":
                run.close()
            elif ending == "finish":
                run.finish(result)
            else:
                run.__exit__(kind, None if kind is None else kind("leaving"), None)

        def plain(plain: PlainStore) -> None:
            if ending == "finish":
                plain.finish(handle, result)
            else:
                plain.leave(handle, failed=kind is OSError)

        def ways(before: PlainStore) -> Iterable[PlainStore]:
            before.handles[handle].closed = before.handles[handle].closed or ending != "finish"
            yield before

        self.pair.do(who, real, plain, ways, is_quiet=ending != "finish")
        self.pair.check(run_id)

    @precondition(any_handle)
    @rule(handle=HANDLES, by=WHO, how=st.sampled_from(("claim", "claim due", "save", "delete", "nothing")))
    def take_over(self, handle, by, how):
        """The holder stands still, and somebody else takes its run."""
        who, run_id = self._holder_of(handle)
        self.pair.freeze(who)
        if how == "claim":
            self.claim(by, run_id, None, 0, block=True)
        elif how == "claim due":
            self.claim_due(by, None, 4)
        elif how == "delete":
            deleted = lambda plain: plain.delete(run_id, force=False)
            self.pair.do(by, lambda store: store.delete(run_id), deleted)
        elif how == "save":
            saved = lambda plain: plain.save(run_id, Save({"by": by}), None)
            self.pair.do(by, lambda store: store.save(run_id, {"by": by}), saved)
        self.pair.check(run_id)

    def _holder_of(self, handle):
        """(process, run) of a handle."""
        return self.pair.who_has(handle), self.plain.handles[handle].run_id
