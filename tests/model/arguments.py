"""What the calls of the machine are given: mostly what fits, sometimes what is refused."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import keepstep
from tests.model.values import CHANGES, KEYS, VALUES, changed

IDS = ("r", "R", "a/b é", "fork")
_ALL_IDS = st.sampled_from(IDS)


def _runs(machine: Any) -> st.SearchStrategy[str]:
    there = [run_id for run_id in IDS if run_id in machine.plain.logs]
    return st.sampled_from([*there * 3, *IDS])


def _handles(machine: Any) -> st.SearchStrategy[int]:
    handles = machine.plain.handles
    return st.sampled_from([*[number for number, handle in handles.items() if not handle.closed] * 4, *handles])


RUNS = st.runner().flatmap(_runs)
"""Mostly runs that are there."""
HANDLES = st.runner().flatmap(_handles)
"""Mostly handles that are open; whether they still have their run is another question."""
WHO = st.sampled_from(("a", "a", "b", "c"))
WORKFLOWS = st.sampled_from(("w",) * 8 + (None,) * 3 + ("v", ""))
NAMES = st.sampled_from((None,) * 8 + ("plan",) * 4 + ("tool", "é", ""))
STEPS = st.one_of(
    st.none(),
    st.none(),
    st.none(),
    st.tuples(st.just("plus"), st.integers(0, 4)),
    st.sampled_from((0, 3, 40, -1, True, "3")),
)
INDEXES = st.integers(-2, 60)
LIMITS = st.integers(1, 4)
TAGS = st.dictionaries(
    st.sampled_from(("team", "vip", "n")), st.sampled_from(("ada", "", True, 1, 1.0, -3, None)), min_size=1, max_size=2
)
EDITS = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from(KEYS), st.one_of(VALUES, st.just(keepstep.REMOVE)), max_size=2),
    CHANGES.map(lambda change: lambda state: changed(state, change)),
)
FAULTS = st.sampled_from(
    (("before", "crash"), ("after", "crash"), ("before", "fail"), ("after", "fail"), ("before", "full"))
)
