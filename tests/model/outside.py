"""Calls that write without a claim: the plain pair, tags, notes, forks, deletion."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

import keepstep
from tests.model import plain_reading, told
from tests.model.arguments import EDITS, INDEXES, NAMES, RUNS, STEPS, TAGS, WHO, WORKFLOWS
from tests.model.plain_runs import Save
from tests.model.plain_store import PlainStore
from tests.model.rules import Rules
from tests.model.values import CHANGES, VALUES, Change, changed, copied


class Outside(Rules):
    """What anybody may do to any run."""

    @rule(who=WHO, run_id=RUNS, change=CHANGES, next=NAMES, label=NAMES, step=STEPS, workflow=WORKFLOWS)
    def save(self, *, who, run_id, change, next, label, step, workflow):
        """The plain pair's save."""
        self._save(who, run_id, change, Save(None, next, step, label), workflow)

    @rule(who=WHO, other=WHO, run_id=RUNS, count=st.integers(2, 40), key=st.sampled_from(("log", "nested")))
    def save_many(self, who, other, run_id, count, key):
        """Two processes save a list that grows, in turn."""
        for number in range(count):
            change = Change("append", key, 0, f"entry {number} " * 10)
            if number == 0 or (run_id in self.plain.logs and not self.plain.is_held(run_id)):
                self._save((who, other)[number % 2], run_id, change, Save(None), None)

    def _save(self, who, run_id, change, save, workflow):
        save = save._replace(state=changed(self.plain.state(run_id), change), step=self.step(save.step, run_id))

        def real(store: keepstep.Store) -> int:
            given = copied(save.state)
            return store.save(run_id, given, save.next, step=save.step, label=save.label, workflow=workflow)

        self.pair.do(who, real, lambda plain: plain.save(run_id, save, workflow))
        self.pair.check(run_id)

    @rule(who=WHO, run_id=RUNS, tags=TAGS)
    def tag(self, who, run_id, tags):
        """Anybody tags."""
        self.pair.do(who, lambda store: store.tag(run_id, tags), lambda plain: plain.tag(run_id, tags))
        self.pair.check(run_id)

    @rule(who=WHO, run_id=RUNS, value=VALUES)
    def note(self, who, run_id, value):
        """Anybody notes something."""
        value = copied(value)
        self.pair.do(who, lambda store: store.note(run_id, value), lambda plain: plain.note(run_id, value))
        self.pair.check(run_id)

    @rule(who=WHO, run_id=RUNS, index=INDEXES, edits=EDITS, new_id=st.one_of(st.just("fork"), RUNS))
    def fork(self, who, run_id, index, edits, new_id):
        """A fork from any step, under an id that may be taken."""
        self._fork(who, run_id, self.a_step(run_id, index), edits, new_id)

    @rule(who=WHO, run_id=RUNS, edits=EDITS, again=EDITS)
    def fork_again(self, who, run_id, edits, again):
        """A fork that is repeated, with the same edits and with others."""
        if run_id != "fork":
            self.delete(who, "fork", force=True)
        for one in (edits, edits, again):
            self._fork(who, run_id, None, one, "fork")

    @rule(who=WHO, run_id=RUNS, edits=EDITS)
    def fork_without_id(self, who, run_id, edits):
        """A fork that gets an id; which one is known only if nothing fails."""
        edits = copied(edits) if isinstance(edits, dict) else edits
        if self.goes_well(who, lambda plain: plain.fork(run_id, None, edits, "new")):
            new_id = self.pair.opened(who).store.fork(run_id, edits=edits).run_id
            assert new_id.startswith(f"{run_id}~")
            self.plain.fork(run_id, None, edits, new_id)
            self.pair.check(new_id)

    def _fork(self, who, run_id, at, edits, new_id):
        edits = copied(edits) if isinstance(edits, dict) else edits

        def real(store: keepstep.Store) -> Any:
            return told.look(store.fork(run_id, at, edits, new_id), self.pair.names)

        def plain(plain: PlainStore) -> Any:
            plain.fork(run_id, at, edits, new_id)
            return plain_reading.look(plain, new_id)

        self.pair.do(who, real, plain)
        self.pair.check(run_id, new_id)

    @rule(who=WHO, run_id=RUNS, force=st.booleans())
    def delete(self, who, run_id, force):
        """A run is erased."""
        self.pair.do(
            who, lambda store: store.delete(run_id, force=force), lambda plain: plain.delete(run_id, force=force)
        )
        self.pair.check(run_id)
