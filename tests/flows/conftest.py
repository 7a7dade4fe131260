from __future__ import annotations

import pytest

from tests.conftest import KINDS
from tests.places import Place


@pytest.fixture(params=KINDS)
def loop_store(request, folder):
    """A store of every kind, behind an event loop: only there are steps coroutine functions."""
    place = Place(request.param, "async", folder)
    yield place.open()
    place.close()
