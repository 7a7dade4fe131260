"""An append waits for nobody but its own run, and batches never meet in a deadlock."""

from __future__ import annotations

import threading
import time
from random import Random
from typing import LiteralString, cast

import psycopg
import pytest

import keepstep
from keepstep.errors import StoreBusy
from keepstep.store.base import Busy, Committed, Conflict, Decision
from keepstep.store.conformance.bench import in_threads
from keepstep.store.conformance.pen import claiming
from keepstep.store.postgres import store as store_module
from keepstep.store.postgres.port import Step
from keepstep.store.postgres.writing import lock_key
from tests.store.postgres.growing import Pen, TurnedClock, done, opened, outcomes, session, write

PATIENCE_SECONDS = 60


@pytest.fixture
def other(postgres_url):
    """Somebody else's session."""
    with session(postgres_url) as connection:
        yield connection
        connection.rollback()


def pens(store, *run_ids):
    clock = TurnedClock()
    made = {run_id: Pen(run_id, clock) for run_id in run_ids}
    write(store, *(pen.open() for pen in made.values()))
    return made


def lock(other: psycopg.Connection, url: str, run_id: str) -> None:
    """Have a run locked, as a process does that is in the middle of its transaction."""
    schema = url.rpartition("=")[2]
    other.execute(cast("LiteralString", f'SELECT 1 FROM "{schema}".runs WHERE id = %s FOR UPDATE'), (run_id.encode(),))


@pytest.mark.parametrize("moved", [False, True])
def test_a_locked_run_is_passed_over_and_the_others_are_written(store, postgres_url, other, moved):
    made = pens(store, "a", "b", "c")
    lock(other, postgres_url, "b")
    appends = [made[one].save()._replace(moved=moved) for one in "abc"]

    told = outcomes(store, *appends)

    assert [type(one) for one in told] == [Committed, Busy, Committed]
    assert len(done(store.records("b"))) == 1
    other.rollback()
    write(store, appends[1])


def test_a_decision_about_a_locked_run_is_not_made(store, postgres_url, other):
    pens(store, "a")
    lock(other, postgres_url, "a")
    shown = []

    assert outcomes(store, Decision("a", shown.append)) == [Busy()]
    assert shown == []


def test_a_save_goes_on_once_its_run_is_free(postgres_url, other):
    with keepstep.open(postgres_url) as store, store.run("r", "w") as run:
        lock(other, postgres_url, "r")
        ended = threading.Event()

        def save() -> None:
            run.save({"n": 1})
            ended.set()

        thread = threading.Thread(target=save)
        thread.start()
        store.save("another", {"n": 2}, workflow="w")  # which waits for nobody

        assert not ended.is_set()
        other.rollback()
        assert ended.wait(PATIENCE_SECONDS)
        thread.join()
        assert store.load("r").state == {"n": 1}


def test_a_run_that_another_transaction_is_creating_is_not_waited_for(store, postgres_url, other):
    twin = opened(postgres_url)
    schema = postgres_url.rpartition("=")[2]
    other.execute("SELECT pg_try_advisory_xact_lock(%s)", (lock_key(schema, "new"),))
    append = Pen("new", TurnedClock()).open()
    beside = Pen("beside", TurnedClock()).open()

    assert [type(one) for one in outcomes(store, append, beside)] == [Busy, Committed]

    other.rollback()
    assert [type(one) for one in outcomes(twin, append)] == [Committed]
    assert outcomes(store, Pen("new", TurnedClock()).open()) == [Conflict()]
    done(twin.close())


def test_of_many_who_create_one_run_one_does_and_no_batch_fails(postgres_url):
    stores = [opened(postgres_url) for _ in range(4)]

    def create(place, turn):
        pens = Pen(f"same {turn}", TurnedClock()), Pen(f"own {turn} {place}", TurnedClock())
        same, own = [pen.open() for pen in pens]
        told = outcomes(stores[place], same, own)
        while isinstance(told[0], Busy):
            told[0] = outcomes(stores[place], same)[0]
        return [type(one).__name__ for one in told]

    for turn in range(20):
        told = in_threads([lambda place=place, turn=turn: create(place, turn) for place in range(4)])
        assert sorted(one for one, _ in told) == ["Committed", "Conflict", "Conflict", "Conflict"]
        assert [own for _, own in told] == ["Committed"] * 4
    for store in stores:
        done(store.close())


def test_batches_in_any_order_never_deadlock(postgres_url):
    stores = [opened(postgres_url) for _ in range(4)]
    ids = [f"r{number}" for number in range(12)]
    pens(stores[0], *ids)

    def work(place):
        dice, told = Random(place), []
        for _ in range(40):
            some = dice.sample(ids, 6)
            told += outcomes(stores[place], *(Decision(one, claiming(TurnedClock(), f"o{place}")) for one in some))
        return told

    told = [one for some in in_threads([lambda place=place: work(place) for place in range(4)]) for one in some]

    written = sum(isinstance(one, Committed) for one in told)
    assert {type(one) for one in told} <= {Committed, Busy}
    epochs = [done(stores[0].view(one)).row.epoch for one in ids]
    assert sum(epochs) == written > 0
    for store in stores:
        done(store.close())


def test_a_claim_passes_over_what_others_have_locked(store, postgres_url, other):
    pens(store, *(f"r{number}" for number in range(5)))
    lock(other, postgres_url, "r0")
    lock(other, postgres_url, "r2")

    claimed = done(store.claim(None, 2, claiming(TurnedClock(), "worker")))

    assert [one.append.run_id for one in claimed] == ["r1", "r3"]


def test_a_delete_waits_for_its_run_and_says_so_when_it_is_never_free(store, postgres_url, other, monkeypatch):
    pens(store, "r")
    lock(other, postgres_url, "r")
    monkeypatch.setattr(store_module, "DELETE_SECONDS", 0.05)

    with pytest.raises(StoreBusy):
        done(store.delete("r", lambda view: None))

    other.rollback()
    assert done(store.delete("r", lambda view: None))


def test_a_client_that_is_frozen_in_a_transaction_loses_its_locks(store, postgres_url):
    made = pens(store, "r")
    frozen = opened(f"{postgres_url}&options=-c%20idle_in_transaction_session_timeout%3D300")
    done(frozen._locked(frozen._lines.writer, ["r"]))  # and there it stays
    append = made["r"].save()

    assert outcomes(store, append) == [Busy()]
    end = time.monotonic() + PATIENCE_SECONDS
    while isinstance(outcomes(store, append)[0], Busy):
        assert time.monotonic() < end

    assert len(done(frozen.records("r"))) == 2
    assert outcomes(frozen, made["r"].copy().save()) != [Busy()]
    done(frozen.close())


def test_locks_are_given_up_within_seconds_unless_the_url_says_otherwise(store):
    [[(limit,)]] = done(store._lines.read(Step("SHOW idle_in_transaction_session_timeout")))
    assert limit == "10s"
