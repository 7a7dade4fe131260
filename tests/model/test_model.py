"""A store does what a plain store of dicts does, whatever is called in whatever order, and whatever fails."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import machine_on

QUICK = settings(
    max_examples=14,
    stateful_step_count=40,
    derandomize=True,  # the same on every machine: what is new is looked for by the soak test
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SOAK = settings(QUICK, max_examples=300, stateful_step_count=60, derandomize=False, print_blob=True)
PLACES = [(kind, mode) for kind in ("memory", "dir", "sqlite", "postgres") for mode in ("sync", "async")]
QUICK_PLACES = [("memory", "sync"), ("dir", "sync"), ("sqlite", "sync"), ("sqlite", "async"), ("postgres", "async")]


@pytest.mark.parametrize(("kind", "mode"), QUICK_PLACES)
def test_a_store_does_what_plain_dicts_do(kind, mode):
    run_state_machine_as_test(machine_on(kind, mode), settings=QUICK)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "mode"), PLACES)
def test_a_store_does_what_plain_dicts_do_for_long(kind, mode):
    run_state_machine_as_test(machine_on(kind, mode), settings=SOAK)
