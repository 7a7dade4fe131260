"""The fixtures that users get."""

from __future__ import annotations

import pytest

import keepstep
from keepstep.testing import Clock


@pytest.fixture
def closed_after():
    """A list; the stores that a test puts into it must be closed when its other fixtures have ended."""
    stores = []
    yield stores
    assert stores
    for store in stores:
        with pytest.raises(keepstep.WrongUse, match="closed"):
            store.load("r")


@pytest.mark.parametrize("time", ["first", "second"])
def test_each_test_has_an_empty_store_of_its_own_which_is_closed_after_it(closed_after, memory_store, time):
    assert isinstance(memory_store, keepstep.Store)
    assert memory_store.url.startswith("memory:")
    assert memory_store.runs().items == []

    memory_store.save("r", {}, workflow="w")
    closed_after.append(memory_store)


def test_its_time_is_that_of_the_clock(memory_store, keepstep_clock):
    assert isinstance(keepstep_clock, Clock)
    memory_store.save("r", {"n": 1}, workflow="w")
    keepstep_clock.turn(3600)
    memory_store.save("r", {"n": 2})

    newer, older = memory_store.history("r").items
    assert (newer.at - older.at).total_seconds() == 3600
