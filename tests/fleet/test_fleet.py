"""A fleet of workers that are killed and frozen at random: every run ends, and every effect happens once.

`KEEPSTEP_TEST_FLEET` may name another store than a SQLite file for the long one.
"""

from __future__ import annotations

import os

import pytest

import keepstep
from tests.fleet.fleet import Fleet


def test_what_befalls_a_few_workers_is_not_seen_in_what_they_did(folder):
    place = str(folder / "runs.db")
    fleet = Fleet(place, folder, workers=4, seed=1)
    with keepstep.open(place) as store:
        fleet.carry(store, 40, pause_seconds=0.3, limit_seconds=240)
        fleet.judge(store, 40)
    assert fleet.befell["killed"] > 2
    assert fleet.befell["frozen"] > 2


@pytest.mark.soak
def test_what_befalls_a_fleet_is_not_seen_in_what_it_did(tmp_path):
    place = os.environ.get("KEEPSTEP_TEST_FLEET", str(tmp_path / "runs.db"))
    fleet = Fleet(place, tmp_path, workers=8, seed=2)
    with keepstep.open(place) as store:
        fleet.carry(store, 500, pause_seconds=0.2, limit_seconds=1800)
        fleet.judge(store, 500)
    assert fleet.befell["killed"] > 50
    assert fleet.befell["frozen"] > 50
    assert fleet.befell["asked"] > 10
