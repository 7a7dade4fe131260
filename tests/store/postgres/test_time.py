"""Time and leases are the database's, whatever the clocks of its clients say."""

from __future__ import annotations

import time

import pytest

import keepstep
from keepstep.runtime.clock import SystemClock
from tests.store.postgres.growing import Pen, TurnedClock, done, opened, write

HOUR_US = 3_600_000_000


def shift(monkeypatch, hours):
    """This host's clock is wrong."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + hours * HOUR_US * 1000)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_lease_runs_by_the_time_of_the_database(postgres_url, monkeypatch, hours):
    with keepstep.open(postgres_url, lease="1m") as right, right.run("r", "w") as run:
        shift(monkeypatch, hours)
        with keepstep.open(postgres_url, lease="1m") as wrong:
            assert wrong.due().items == []
            with pytest.raises(keepstep.RunHeld):
                wrong.claim("r")
            with wrong.run("own", "w") as own:
                assert right.look("own").holder.stands
                assert 50 < wrong._session.engine.ownership.lease_left(wrong._session.engine.clock) <= 60
                own.save({})
        run.save({"n": 1})


@pytest.mark.parametrize("hours", [-1, 1])
def test_records_are_dated_by_the_time_of_the_database(postgres_url, monkeypatch, hours):
    before = time.time_ns() // 1000
    shift(monkeypatch, hours)

    with keepstep.open(postgres_url) as store, store.run("r", "w") as run:
        run.save({"n": 1})
        saved = store.look("r").saved.timestamp() * 1e6

    monkeypatch.undo()
    assert before - 60_000_000 < saved < time.time_ns() // 1000 + 60_000_000


def test_a_lease_that_has_passed_is_passed_for_everybody(postgres_url):
    store, other = opened(postgres_url), opened(postgres_url)
    pen = Pen("r", TurnedClock())
    done(store.enlist("short", 0.0))
    write(store, pen.open(), pen.claim("short"))

    view = done(other.view("r"))

    assert view.holder is not None
    assert not view.holder.stands
    assert view.holder.until_us <= view.now_us
    for one in (store, other):
        done(one.close())


def test_a_clock_that_agreed_follows_the_store_and_not_the_host(monkeypatch):
    clock = SystemClock()
    host_us = clock.now_us()
    clock.agree(host_us - HOUR_US)
    shift(monkeypatch, 5)

    assert host_us - HOUR_US <= clock.now_us() < host_us - HOUR_US + 60_000_000

    clock.agree(host_us - 2 * HOUR_US)
    assert clock.now_us() >= host_us - HOUR_US, "it never runs backwards"
