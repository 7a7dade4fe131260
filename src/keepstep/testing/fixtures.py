"""pytest fixtures: put `pytest_plugins = ["keepstep.testing.fixtures"]` into your conftest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from keepstep.api.opening import open as open_store
from keepstep.api.store import Store
from keepstep.testing.clock import Clock


@pytest.fixture
def keepstep_clock() -> Clock:
    """The clock of `memory_store`; turn it with `keepstep_clock.turn(seconds)`."""
    return Clock()


@pytest.fixture
def memory_store(keepstep_clock: Clock) -> Iterator[Store]:
    """An empty store in memory, whose time stands still until it is turned."""
    with open_store("memory:", clock=keepstep_clock) as store:
        yield store
