"""The clock that a test turns."""

from __future__ import annotations

import asyncio
import threading

import pytest

import keepstep
from keepstep.testing import Clock

PATIENCE_SECONDS = 15.0


def test_time_stands_still_until_it_is_turned():
    clock = Clock()
    before = clock.now_us()
    assert clock.now_us() == before

    clock.turn(1.5)

    assert clock.now_us() == before + 1_500_000


def test_it_begins_where_it_is_told():
    assert Clock(start_us=5).now_us() == 5
    assert Clock().now_us() == Clock().now_us()


def test_it_is_not_turned_back():
    clock = Clock(5)

    with pytest.raises(ValueError, match="forwards"):
        clock.turn(-0.001)

    assert clock.now_us() == 5


def test_whoever_sleeps_turns_it():
    clock = Clock(0)

    clock.sleep(2)
    clock.sleep(-1)

    assert clock.now_us() == 2_000_000


def test_whoever_pauses_turns_it_and_lets_others_run():
    clock, order = Clock(0), []

    async def other():
        order.append(clock.now_us())

    async def story():
        task = asyncio.ensure_future(other())
        await clock.pause(3)
        order.append("after")
        await task

    asyncio.run(story())

    assert order == [3_000_000, "after"]


def test_a_wait_ends_when_the_clock_was_turned_so_far():
    clock, answers, waiting = Clock(), [], threading.Event()

    def wait():
        waiting.set()
        answers.append(clock.wait(threading.Event(), 10))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert waiting.wait(PATIENCE_SECONDS)
    clock.turn(9)
    thread.join(0.02)
    assert thread.is_alive()

    clock.turn(10)
    thread.join(PATIENCE_SECONDS)

    assert answers == [False]


def test_a_wait_ends_when_it_is_told_to():
    stop = threading.Event()
    stop.set()

    assert Clock().wait(stop, 10)


def test_turns_from_many_threads_add_up():
    clock = Clock(0)
    threads = [threading.Thread(target=lambda: [clock.turn(0.001) for _ in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert clock.now_us() == 4_000_000


@pytest.mark.parametrize("place", ["memory:", "runs.db", "dir:runs"])
def test_every_time_in_a_store_is_the_clocks(place, folder, monkeypatch):
    monkeypatch.chdir(folder)
    clock = Clock()
    with keepstep.open(place, clock=clock, lease=20) as store:
        with store.run("r", "w") as run:
            clock.turn(5)
            run.save({"n": 1})
            holder = store.look("r").holder
        look = store.look("r")

    assert look.created.timestamp() == 1_750_000_000
    assert look.saved
    assert (look.saved - look.created).total_seconds() == 5
    assert holder
    assert (holder.until - look.created).total_seconds() >= 20
