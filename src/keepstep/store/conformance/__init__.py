"""What every store has to do, as tests: for who writes a store, and for the stores of keepstep.

In a test file:

    import pytest
    pytest.register_assert_rewrite("keepstep.store.conformance")  # for failures that show the values
    from keepstep.store.conformance import StoreConformance

    class TestMine(StoreConformance):
        @pytest.fixture(autouse=True)
        def _place(self, tmp_path):
            self.path = tmp_path / "mine"

        def open_store(self, clock):
            return MyStore(self.path, clock)

        def reopen(self, store):  # leave it out if there is no way
            return MyStore(self.path, self.clock)

The stores' time comes from a clock that the tests turn; a test takes milliseconds, the largest log a second or two.
"""

from keepstep.store.conformance.bench import Bench
from keepstep.store.conformance.bodies import Bodies
from keepstep.store.conformance.changes import Changes
from keepstep.store.conformance.claims import Claims
from keepstep.store.conformance.commits import Commits
from keepstep.store.conformance.decisions import Decisions
from keepstep.store.conformance.deletion import Deletion
from keepstep.store.conformance.extremes import Extremes
from keepstep.store.conformance.life import Life
from keepstep.store.conformance.lists import Lists
from keepstep.store.conformance.owners import Owners
from keepstep.store.conformance.reading import Reading
from keepstep.store.conformance.turned_clock import TurnedClock

__all__ = ["StoreConformance", "TurnedClock"]


class StoreConformance(
    Commits, Decisions, Deletion, Reading, Bodies, Owners, Claims, Lists, Changes, Extremes, Life, Bench
):
    """All tests; see the module for how to run them."""
