"""Crash a piece of work at every store operation in turn, and go on after each crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from keepstep.api.opening import open as open_store
from keepstep.api.places import store_for
from keepstep.api.store import Store
from keepstep.runtime.clock import SystemClock
from keepstep.testing.faults import FaultyStore, SimulatedCrash, When

POINTS_MAX = 100_000
"""A scenario of more operations is not one."""


def crash_everywhere(
    place: Callable[[], str], work: Callable[[Store], object], check: Callable[[Store], object]
) -> int:
    """For each operation of `work`: crash before it, and after it; open the store again, work to the end, check.

    `place` gives a new, empty place each time (a path in a temporary folder). `work` must be able to continue from
    wherever it was. Returns how many crashes there were.
    """
    crashes = 0
    for at, when in _points():
        where = place()
        if _crashed(where, work, at, when):
            crashes += 1
            with open_store(where) as store:
                work(store)
                check(store)
        else:
            return crashes
    raise AssertionError(f"the work did not end within {POINTS_MAX} operations")


def _points() -> Iterator[tuple[int, When]]:
    for at in range(1, POINTS_MAX):
        yield at, "before"
        yield at, "after"


def _crashed(where: str, work: Callable[[Store], object], at: int, when: When) -> bool:
    clock = SystemClock()
    faulty = FaultyStore(store_for(where, clock, read_only=False), at, when)
    store = open_store(faulty, clock=clock)
    try:
        work(store)
        store.close()
    except SimulatedCrash:
        with suppress(SimulatedCrash):
            store.close()  # ends its heartbeat
        return True
    return faulty.dead
