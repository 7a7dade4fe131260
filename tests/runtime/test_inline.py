"""Waiting in the calling thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from keepstep.errors import StoreFailed, WrongUse
from keepstep.runtime.inline import InlinePromise, InlineRuntime, Turnstile, drive
from keepstep.store.base import Committed
from keepstep.store.commit_queue import CommitQueue
from keepstep.testing import Clock
from tests.runtime.wishes import Watched, Wish

PATIENCE_SECONDS = 15.0


@pytest.fixture
def store():
    return Watched()


@pytest.fixture
def runtime():
    return InlineRuntime(Clock())


@pytest.fixture
def queue(store, runtime):
    return CommitQueue(store, runtime.mutex())


def started(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def ended(thread):
    thread.join(PATIENCE_SECONDS)
    return not thread.is_alive()


# --- drive -----------------------------------------------------------------------------------------------------------


def test_a_coroutine_that_never_suspends_is_carried_out():
    async def add(one, two):
        return one + two

    async def outer():
        return await add(await add(1, 2), 3)

    assert drive(outer()) == 6


def test_what_a_coroutine_raises_is_raised():
    async def fail():
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        drive(fail())


def test_a_coroutine_that_suspends_is_refused_and_cleaned_up():
    left = []

    async def waits():
        try:
            await asyncio.sleep(0)
        finally:
            left.append("the block")

    coroutine = waits()  # held, so that it is not cleaned up by being thrown away
    with pytest.raises(WrongUse, match=r"keepstep\.open_async\(\)"):
        drive(coroutine)

    assert left == ["the block"]


# --- promises --------------------------------------------------------------------------------------------------------


def test_a_promise_gives_what_was_set():
    promise = InlinePromise()
    assert not promise.done

    promise.set(5)

    assert promise.done
    assert promise.result() == 5


def test_a_promise_raises_what_it_failed_with():
    promise = InlinePromise()
    promise.fail(StoreFailed("no."))

    with pytest.raises(StoreFailed, match="no"):
        promise.result()


def test_waking_tells_whether_anybody_sleeps():
    promise = InlinePromise()
    assert not promise.wake()

    promise.prepare()
    assert promise.wake()
    promise.sleep(PATIENCE_SECONDS)  # was woken before it slept, and does not miss it

    promise.rise()
    assert not promise.wake()


def test_a_value_wakes_the_thread_that_waits_for_it():
    promise = InlinePromise()
    promise.prepare()
    thread = started(lambda: promise.sleep(PATIENCE_SECONDS * 2))

    promise.set(5)

    assert ended(thread)


def test_a_turnstile_lets_one_thread_through_at_a_time():
    turnstile = Turnstile()
    inside, order = threading.Event(), []

    async def first():
        async with turnstile:
            inside.set()
            assert not entered.wait(0.05)
            order.append("first")

    async def second():
        async with turnstile:
            entered.set()
            order.append("second")

    entered = threading.Event()
    one = started(lambda: drive(first()))
    assert inside.wait(PATIENCE_SECONDS)
    two = started(lambda: drive(second()))

    assert ended(one)
    assert ended(two)
    assert order == ["first", "second"]


# --- leading ---------------------------------------------------------------------------------------------------------


def test_a_lone_thread_commits_by_itself(store, runtime, queue):
    wish = Wish(queue, runtime.promise())

    assert isinstance(drive(runtime.wait(queue, wish.promise)), Committed)
    assert store.threads == [threading.get_ident()]
    assert queue.idle
    assert queue.lead()  # nobody leads any more


def test_what_others_have_put_in_goes_along(store, runtime, queue):
    wishes = [Wish(queue, runtime.promise()) for _ in range(5)]

    drive(runtime.wait(queue, wishes[2].promise))

    assert store.sizes == [5]
    assert all(wish.promise.done for wish in wishes)


def test_the_lead_goes_to_a_thread_that_waits(store, runtime, queue):
    under_way, go_on = threading.Event(), threading.Event()

    def hold():
        store.before = lambda: None
        under_way.set()
        assert go_on.wait(PATIENCE_SECONDS)

    runtime.watch_seconds = 2 * PATIENCE_SECONDS  # nobody comes to look by himself
    store.before = hold
    wishes = [Wish(queue, runtime.promise())]
    threads = [started(lambda: drive(runtime.wait(queue, wishes[0].promise)))]
    assert under_way.wait(PATIENCE_SECONDS)
    wishes += [Wish(queue, runtime.promise()) for _ in range(3)]
    threads += [started(lambda wish=wish: drive(runtime.wait(queue, wish.promise))) for wish in wishes[1:]]

    while not all(wish.promise._bell for wish in wishes[1:]):
        go_on.wait(0.001)  # until each of them sleeps
    go_on.set()

    assert all(ended(thread) for thread in threads)
    assert store.sizes == [1, 3]
    assert store.threads[0] != store.threads[1]
    assert queue.lead()


@pytest.mark.parametrize(("coming", "together"), [(0, 1), (1, 2), (2, 3), (5, 3)])
def test_those_who_were_told_together_may_come_along_again(store, runtime, queue, monkeypatch, *, coming, together):
    first = [Wish(queue, runtime.promise()) for _ in range(3)]
    drive(runtime.wait(queue, first[0].promise))
    late = iter(range(coming))
    arrive = lambda _: next(late, None) is not None and Wish(queue, runtime.promise())
    monkeypatch.setattr("keepstep.runtime.inline.time.sleep", arrive)

    drive(runtime.wait(queue, Wish(queue, runtime.promise()).promise))

    assert store.sizes == [3, together]


def test_whoever_was_told_alone_waits_for_nobody(store, runtime, queue, monkeypatch):
    monkeypatch.setattr("keepstep.runtime.inline.time.sleep", lambda _: pytest.fail("it waited"))
    for _ in range(3):
        drive(runtime.wait(queue, Wish(queue, runtime.promise()).promise))

    assert store.sizes == [1, 1, 1]


def test_a_leader_that_fails_hands_the_lead_over_all_the_same(store, runtime, queue):
    def stop():
        store.before = lambda: None
        raise KeyboardInterrupt

    store.before = stop
    wish = Wish(queue, runtime.promise())

    with pytest.raises(KeyboardInterrupt):
        drive(runtime.wait(queue, wish.promise))

    assert not wish.promise.done
    assert isinstance(drive(runtime.wait(queue, wish.promise)), Committed)


def test_an_error_of_the_store_reaches_whoever_waits(store, runtime, queue):
    def fail():
        raise OSError("no")

    store.before = fail
    wish = Wish(queue, runtime.promise())

    with pytest.raises(OSError, match="no"):
        drive(runtime.wait(queue, wish.promise))


def test_a_nudge_writes_what_nobody_waits_for(runtime, queue):
    wish = Wish(queue, runtime.promise())

    runtime.nudge(queue)

    assert wish.promise.done


def test_draining_waits_for_what_another_thread_writes(store, runtime, queue):
    under_way, go_on = threading.Event(), threading.Event()

    def hold():
        under_way.set()
        assert go_on.wait(PATIENCE_SECONDS)

    store.before = hold
    wish = Wish(queue, runtime.promise())
    leader = started(lambda: runtime.nudge(queue))
    assert under_way.wait(PATIENCE_SECONDS)
    drained = started(lambda: drive(runtime.drain(queue)))
    drained.join(0.05)
    assert drained.is_alive()
    assert not wish.promise.done

    go_on.set()

    assert ended(leader)
    assert ended(drained)
    assert wish.promise.done


def test_the_users_function_runs_here(runtime):
    assert drive(runtime.call(threading.get_ident)) == threading.get_ident()


def test_pausing_turns_the_clock(runtime):
    before = runtime.clock.now_us()

    drive(runtime.pause(2.5))

    assert runtime.clock.now_us() - before == 2_500_000
