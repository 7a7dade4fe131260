from __future__ import annotations

import pytest

import keepstep
from tests.handles import open_behind


@pytest.fixture(params=["sync", "async"])
def opened(request):
    """Opens a store by one of the two doors; it is closed at the end of the test."""
    door = keepstep.open if request.param == "sync" else open_behind
    stores = []

    def enter(place, **options):
        stores.append(door(place, **options))
        return stores[-1]

    yield enter
    for store in stores:
        store.close()


@pytest.fixture
def whole_logs(place):
    """Whatever happened to the runs of a story, their logs are whole at its end."""
    yield
    store = place.open()
    for one in store.runs().items:
        verification = store.verify(one.run_id)
        assert verification.ok, verification.damage
