"""A store with one fault, as a user puts it under an agent."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import Any

import pytest

import keepstep
from keepstep.runtime.clock import SystemClock
from keepstep.store.directory import DirectoryStore
from keepstep.store.memory import MemoryStore
from keepstep.store.sqlite import SqliteStore
from keepstep.testing import Clock, FaultyStore, SimulatedCrash

KINDS = {"memory": None, "dir": DirectoryStore, "sqlite": SqliteStore}

ONCE = {"fail": keepstep.StoreFailed, "full": keepstep.StoreFull}


@pytest.fixture(params=KINDS)
def faulty(request, folder):
    """A store of each kind, without a fault as yet."""
    kind, clock = KINDS[request.param], SystemClock()
    base = MemoryStore(clock, f"faults in {folder}") if kind is None else kind(str(folder / "store"), clock)
    return FaultyStore(base)


def arm(faulty, how, when="before", ahead=1):
    """The operation that is so far ahead will be the one."""
    faulty.at, faulty.how, faulty.when = faulty.operations + ahead, how, when


def test_without_a_fault_it_is_the_store(faulty):
    with keepstep.open(faulty) as store:
        assert store.url == faulty.store.url
        assert store.save("r", {"n": 1}, workflow="w") == 1
        with store.run("r") as run:
            run.save({"n": 2})
        store.fork("r", id="copy")
        assert [one.run_id for one in store.runs().items] == ["copy", "r"]
        assert store.verify("r").ok
        assert store.size().runs == 2
        assert store.delete("copy")
    assert not faulty.dead


def test_operations_are_counted_the_same_every_time():
    def count():
        faulty = FaultyStore(MemoryStore(SystemClock()))
        with keepstep.open(faulty) as store:
            counts = []
            for act in (
                lambda: store.save("r", {"n": 1}, workflow="w"),
                lambda: store.load("r"),
                lambda: store.carry(lambda run: run.save({"n": 2}), "r"),
            ):
                before = faulty.operations
                act()
                counts.append(faulty.operations - before)
            return counts

    assert count() == count()
    assert all(count())


def test_heartbeats_are_not_counted():
    clock = Clock()
    faulty = FaultyStore(MemoryStore(clock))
    with keepstep.open(faulty, clock=clock, lease=3) as store, store.run("r", "w") as run:
        before = faulty.operations
        heart: Any = store._session._engine.ownership._heart
        for _ in range(3):
            heart._heard(heart._renew())
        assert faulty.operations == before
        run.save({})


@pytest.mark.parametrize("how", ONCE)
def test_an_operation_that_fails_before_it_is_done_was_not_done(faulty, how):
    with keepstep.open(faulty) as store:
        store.save("r", {"n": 1}, workflow="w")
        arm(faulty, how)

        with pytest.raises(ONCE[how]):
            store.save("r", {"n": 2})

        assert store.load("r").state == {"n": 1}
        assert store.save("r", {"n": 2}) == 2
        assert store.verify("r").ok


def test_an_operation_that_fails_after_it_was_done_was_done(faulty):
    with keepstep.open(faulty) as store:
        store.save("r", {"n": 1}, workflow="w")
        arm(faulty, "fail", "after")

        assert store.save("r", {"n": 2}) == 2  # its reply was lost; it finds that it was written

        assert store.load("r").step == 2
        assert store.verify("r").ok


def test_a_fault_strikes_only_the_operation_it_is_meant_for(faulty):
    with keepstep.open(faulty) as store:
        store.save("r", {"n": 0}, workflow="w")
        arm(faulty, "full", ahead=3)

        assert store.save("r", {"n": 1}) == 2
        assert store.save("r", {"n": 2}) == 3
        with pytest.raises(keepstep.StoreFull):
            store.save("r", {"n": 3})
        assert store.save("r", {"n": 4}) == 4


@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_crash_nothing_more_happens(faulty, when):
    store = keepstep.open(faulty)
    store.save("r", {"n": 1}, workflow="w")
    arm(faulty, "crash", when)

    for act in (lambda: store.save("r", {"n": 2}), lambda: store.load("r"), lambda: store.delete("r"), store.runs):
        with pytest.raises(SimulatedCrash):
            act()

    assert faulty.dead
    with suppress(SimulatedCrash):
        store.close()
    with keepstep.open(faulty.store.url) as again:
        assert again.load("r").step == (1 if when == "before" else 2)
        assert again.verify("r").ok


def test_a_crash_leaves_its_runs_claimed_and_the_next_process_takes_them_over(folder):
    url = f"sqlite:{folder}/runs.db"
    faulty = FaultyStore(SqliteStore(url, SystemClock()))
    store = keepstep.open(faulty)
    run = store.claim("r", "w")
    run.save({"n": 1})

    faulty.die()

    with pytest.raises(SimulatedCrash):
        run.save({"n": 2})
    with keepstep.open(url) as again:
        assert again.look("r").status == "running"
        assert not again.look("r").holder.stands
        with again.run("r") as after:
            assert (after.state, after.deaths) == ({"n": 1}, 1)
    store._session.engine.ownership.stop()


def test_a_crash_is_no_failure_of_the_run():
    faulty = FaultyStore(MemoryStore(SystemClock(), "no failure"))
    store = keepstep.open(faulty)

    def work(run):
        run.save({"n": 1})
        arm(faulty, "crash")
        with suppress(Exception):
            run.save({"n": 2})
        pytest.fail("an agent that catches everything goes on after its death")

    with pytest.raises(SimulatedCrash):
        store.carry(work, "r", "w")
    store._session.engine.ownership.stop()

    assert not issubclass(SimulatedCrash, Exception)
    assert keepstep.open("memory:no failure").look("r").status == "running"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_ends_the_process(folder, when):
    url = f"sqlite:{folder}/runs.db"
    pid = os.fork()
    if pid == 0:
        try:
            faulty = FaultyStore(SqliteStore(url, SystemClock()))
            store = keepstep.open(faulty)
            store.save("r", {"n": 1}, workflow="w")
            arm(faulty, "kill", when)
            store.save("r", {"n": 2})
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)

    assert os.WTERMSIG(status) == signal.SIGKILL
    with keepstep.open(url) as store:
        assert store.load("r").step == (1 if when == "before" else 2)


@pytest.mark.parametrize("how", ONCE)
def test_an_async_store_has_the_same_faults(how):
    async def story():
        faulty = FaultyStore(MemoryStore(SystemClock()))
        async with keepstep.open_async(faulty) as store:
            await store.save("r", {"n": 1}, workflow="w")
            arm(faulty, how)
            with pytest.raises(ONCE[how]):
                await store.save("r", {"n": 2})
            return await store.save("r", {"n": 3})

    assert asyncio.run(story()) == 2
