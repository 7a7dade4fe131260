"""A check of the stored bytes that the store itself cuts off."""

from __future__ import annotations

from typing import Any, cast

import pytest

import keepstep
from keepstep.api.places import store_for
from keepstep.testing import FaultyStore


def test_a_store_that_fails_is_not_taken_for_damage(place):
    with place.open().run("r", "w") as run:
        for number in range(3):
            run.save({"text": f"words {number} " * 40})
    faulty = FaultyStore(store_for(place.url, place.clock, read_only=False), how="fail")
    store = place.open(cast(Any, faulty))
    assert store.verify("r").ok
    operations = faulty.operations

    for at in range(1, operations + 1):
        faulty.at = faulty.operations + at
        with pytest.raises(keepstep.StoreFailed):
            store.verify("r")

    assert operations > 3
    assert store.verify("r").ok
