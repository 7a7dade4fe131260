"""Calls that read."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

import keepstep
from keepstep.log.lifecycle import STATUSES
from tests.model import plain_reading, told
from tests.model.arguments import INDEXES, LIMITS, RUNS, TAGS, WHO
from tests.model.plain_store import PlainStore
from tests.model.rules import Rules
from tests.model.values import exact


class Looking(Rules):
    """Runs, their pasts, and lists of them, as anybody sees them."""

    @rule(who=WHO, run_id=RUNS, index=INDEXES, by=st.sampled_from(("step", "seq", "label", "nothing")))
    def look(self, who, run_id, index, by):
        """A run as it stands, and as it stood once."""
        log = self.plain.logs.get(run_id)
        seq = log.marks[index % len(log.marks)][0] if log is not None and log.marks and index < 50 else index
        chosen = {by: {"step": self.a_step(run_id, index), "seq": seq, "label": "plan", "nothing": None}[by]}
        chosen = {name: value for name, value in chosen.items() if value is not None}

        def real(store: keepstep.Store) -> Any:
            return told.checkpoint(store.at(run_id, **chosen))

        self.pair.do(who, real, lambda plain: plain_reading.at(plain, run_id, chosen))
        self.pair.do(
            who, lambda store: told.checkpoint(store.load(run_id)), lambda one: plain_reading.load(one, run_id)
        )
        self.pair.do(
            who,
            lambda store: told.look(store.look(run_id), self.pair.names),
            lambda plain: plain_reading.look(plain, run_id),
        )

    @rule(who=WHO, run_id=RUNS, other=st.one_of(st.none(), RUNS), old=INDEXES, new=INDEXES)
    def compare(self, who, run_id, other, old, new):
        """What changed from one step to another."""
        old, new = self.a_step(run_id, old), self.a_step(other or run_id, new)

        def real(store: keepstep.Store) -> str:
            return exact(store.diff(run_id, old, new, other=other))

        self.pair.do(who, real, lambda plain: plain_reading.diff(plain, run_id, old, new, other))

    @rule(who=WHO, run_id=RUNS, newest_first=st.booleans(), limit=st.integers(1, 50))
    def read_history(self, who, run_id, newest_first, limit):
        """All of a run's past, in pages; and what is stored of it."""

        def history(store: keepstep.Store) -> Any:
            found = told.pages(store.history, limit, run_id, newest_first=newest_first)
            return [told.line(one) for one in found]

        def weight(store: keepstep.Store) -> Any:
            found, size = store.verify(run_id), store.size(run_id)
            assert found.ok, found.damage
            assert found.records == size.records
            return size.records, sorted(size.by_key), store.size().runs

        self.pair.do(who, history, lambda plain: plain_reading.history(plain, run_id, newest_first=newest_first))
        self.pair.do(who, weight, lambda plain: plain_reading.size(plain, run_id))

    @rule(
        who=WHO,
        workflow=st.sampled_from((None, None, "w", "v")),
        status=st.one_of(st.none(), st.sampled_from(STATUSES), st.lists(st.sampled_from(STATUSES), max_size=3)),
        tags=st.one_of(st.none(), TAGS),
        starts_with=st.sampled_from(("", "", "r", "a/", "fo")),
        order=st.sampled_from(("created", "changed")),
        newest_first=st.booleans(),
        limit=LIMITS,
    )
    def list_runs(self, *, who, workflow, status, tags, starts_with, order, newest_first, limit):
        """Runs by all that they can be sought by."""
        tags = {name: value for name, value in (tags or {}).items() if value is not None}
        how = {"order": order, "newest_first": newest_first}
        filters = {"status": status, "tags": tags, "starts_with": starts_with}

        def real(store: keepstep.Store) -> Any:
            found = told.pages(store.runs, limit, workflow, **filters, **how)
            return [told.head(one, self.pair.names) for one in found]

        self.pair.do(who, real, lambda plain: plain_reading.runs(plain, workflow, **filters, **how))

    @rule(who=WHO, workflow=st.sampled_from((None, "w", "v")), run_id=RUNS, limit=LIMITS)
    def list_due_and_children(self, who, workflow, run_id, limit):
        """What a worker would take, and what was forked from a run."""

        def due(store: keepstep.Store) -> Any:
            return [told.head(one, self.pair.names) for one in told.pages(store.due, limit, workflow)]

        def children(store: keepstep.Store) -> Any:
            return [told.head(one, self.pair.names) for one in told.pages(store.children, limit, run_id)]

        def plain_due(plain: PlainStore) -> Any:
            return plain_reading.runs(plain, workflow, due=True, order="changed", newest_first=False)

        self.pair.do(who, due, plain_due)
        self.pair.do(who, children, lambda plain: plain_reading.runs(plain, parent=run_id))
