from __future__ import annotations

import pytest

from keepstep.runtime.clock import SystemClock


@pytest.fixture
def opened(place):
    """Opens the place's store by the real clock, which a worker that waits does not turn."""
    return lambda **how: place.open(clock=SystemClock(), **how)


@pytest.fixture
def store(opened):
    return opened()


@pytest.fixture
def opened_on_disk(disk_place):
    """The same, on the kinds where another owner's death is known at once."""
    return lambda **how: disk_place.open(clock=SystemClock(), **how)
