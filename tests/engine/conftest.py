from __future__ import annotations

import pytest

import keepstep
from tests.engine.hooked_store import HookedStore
from tests.places import Place


@pytest.fixture
def hooked(place: Place) -> HookedStore:
    """The store under `holder`, with hooks."""
    return HookedStore(place)


@pytest.fixture
def holder(place: Place, hooked: HookedStore) -> keepstep.Store:
    """An open store over the one with hooks."""
    return place.open(hooked)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def other(place: Place) -> keepstep.Store:
    """The same store, opened by somebody else."""
    return place.open()
