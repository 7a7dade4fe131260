"""A blocking store behind an event loop: lanes of threads, and what becomes of calls that nobody waits for."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import warnings
from typing import Any

import pytest

from keepstep.errors import StoreFailed, WrongUse
from keepstep.log.ledger import LedgerEntry
from keepstep.runtime.clock import SystemClock
from keepstep.runtime.off_thread import READERS, Lane, Lookups, OffThread
from keepstep.store import base
from keepstep.store.base import Query
from keepstep.store.memory import MemoryStore
from tests.children import in_child

PATIENCE_SECONDS = 15.0


@pytest.fixture
def lanes():
    """Makes lanes that are closed at the end."""
    made = []

    def lane(threads=1):
        made.append(Lane("of a test", threads))
        return made[-1]

    yield lane
    for one in made:
        one.close()


async def gives(value):
    return value


async def acts(act):
    return act()


class Gate:
    """Work that is held up in its thread until the test lets it go."""

    def __init__(self):
        self.entered = threading.Event()
        self.open = threading.Event()
        self.left = threading.Event()

    async def work(self):
        self.entered.set()
        assert self.open.wait(PATIENCE_SECONDS)
        self.left.set()
        return "done"

    async def arrived(self):
        assert await asyncio.to_thread(self.entered.wait, PATIENCE_SECONDS)


# --- lanes -----------------------------------------------------------------------------------------------------------


def test_calls_are_carried_out_in_order_by_one_thread(lanes):
    order = []

    async def story():
        lane = lanes()
        return await asyncio.gather(
            *(lane.call(acts(lambda n=n: order.append(n) or threading.get_ident())) for n in range(50))
        )

    threads = asyncio.run(story())

    assert order == list(range(50))
    assert len(set(threads)) == 1
    assert threading.get_ident() not in threads


def test_a_thread_is_started_when_it_is_needed(lanes):
    lane = lanes()
    assert lane._threads == []

    asyncio.run(lane.call(gives(1)))

    assert len(lane._threads) == 1


def test_a_lane_of_two_does_two_things_at_once_and_no_third(lanes):
    async def story():
        lane, gates = lanes(2), [Gate(), Gate(), Gate()]
        calls = [asyncio.ensure_future(lane.call(gate.work())) for gate in gates]
        await gates[0].arrived()
        await gates[1].arrived()
        assert not gates[2].entered.is_set()
        for gate in gates:
            gate.open.set()
        return await asyncio.gather(*calls)

    assert asyncio.run(story()) == ["done"] * 3


class Odd(BaseException):
    pass


@pytest.mark.parametrize("error", [KeyError("x"), StoreFailed("no."), Odd()], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("through", [False, True])
def test_what_is_raised_on_the_thread_is_raised_where_the_call_came_from(lanes, error, through):
    def fail():
        raise error

    async def story():
        lane = lanes()
        call = lane.call_through if through else lane.call
        with pytest.raises(type(error)) as caught:
            await call(acts(fail))
        assert caught.value is error
        return await call(gives("next"))

    assert asyncio.run(story()) == "next"


def test_a_coroutine_that_suspends_is_an_error_and_not_a_hang(lanes):
    async def story():
        with pytest.raises(WrongUse):
            await lanes().call(asyncio.sleep(0))

    asyncio.run(story())


def test_a_cancelled_call_is_left_and_its_work_still_ends(lanes):
    async def story():
        lane, gate = lanes(), Gate()
        call = asyncio.ensure_future(lane.call(gate.work()))
        await gate.arrived()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not gate.left.is_set()
        gate.open.set()
        assert await lane.call(gives("next")) == "next"
        return gate.left.is_set()

    assert asyncio.run(story())


def test_a_call_that_is_seen_through_outlives_every_cancellation(lanes):
    async def story():
        lane, gate = lanes(), Gate()
        call = asyncio.ensure_future(lane.call_through(gate.work()))
        await gate.arrived()
        for _ in range(3):
            call.cancel()
            await asyncio.sleep(0)
        assert not call.done()
        gate.open.set()
        return await call

    assert asyncio.run(story()) == "done"


def test_closing_lets_what_is_queued_end(lanes):
    done = []

    async def story():
        lane = lanes()
        calls = [asyncio.ensure_future(lane.call(acts(lambda n=n: done.append(n)))) for n in range(20)]
        await asyncio.sleep(0)
        lane.close()
        lane.close()
        assert done == list(range(20))
        await asyncio.gather(*calls)
        return lane

    lane = asyncio.run(story())
    assert not any(thread.is_alive() for thread in lane._threads)


def test_a_closed_lane_refuses_and_leaves_no_coroutine_behind(lanes):
    async def story():
        lane = lanes()
        lane.close()
        for call in (lane.call, lane.call_through):
            with pytest.raises(StoreFailed, match="closed"):
                await call(gives(1))

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that is never awaited is warned about
        asyncio.run(story())
        gc.collect()


def test_a_loop_that_ends_before_the_answer_harms_nobody(lanes):
    lane, gate = lanes(), Gate()

    async def leave():
        asyncio.ensure_future(lane.call(gate.work()))  # noqa: RUF006 - cancelled with its loop
        await gate.arrived()

    asyncio.run(leave())
    gate.open.set()

    assert asyncio.run(lane.call(gives("next"))) == "next"
    assert gate.left.is_set()


# --- the store -------------------------------------------------------------------------------------------------------


def methods_of(cls):
    return {name for name, one in vars(cls).items() if inspect.isfunction(one) and not name.startswith("_")}


def test_it_has_every_method_of_a_store_with_the_same_parameters():
    assert methods_of(OffThread) == methods_of(base.Store)
    for name in methods_of(base.Store):
        theirs, ours = (inspect.signature(getattr(cls, name)) for cls in (base.Store, OffThread))
        assert list(ours.parameters.values()) == list(theirs.parameters.values()), name
        assert inspect.iscoroutinefunction(getattr(OffThread, name)) == inspect.iscoroutinefunction(
            getattr(base.Store, name)
        )


def test_it_is_the_same_store_and_does_not_block():
    inner = MemoryStore(SystemClock())
    store = OffThread(inner)

    assert (store.url, store.read_only, store.blocking) == (inner.url, inner.read_only, False)


class Slow(MemoryStore):
    """A store whose commits are held up."""

    def __init__(self):
        super().__init__(SystemClock())
        self.gate = Gate()
        self.ran_on = {}

    async def commit(self, batch):
        self.ran_on["commit"] = threading.current_thread().name
        await self.gate.work()
        return await super().commit(batch)

    async def view(self, run_id):
        self.ran_on["view"] = threading.current_thread().name
        return await super().view(run_id)

    async def changes(self, seen, seconds):
        self.ran_on["changes"] = threading.current_thread().name
        return await super().changes(seen, seconds)


def test_reading_and_watching_go_on_beside_a_commit():
    async def story():
        inner = Slow()
        store = OffThread(inner)
        await store.open()
        commit = asyncio.ensure_future(store.commit([]))
        await inner.gate.arrived()
        assert (await store.view("r")).row is None
        assert (await store.rows(Query(), None, 9)).rows == []
        seen = await store.changes(None, 0)
        assert await store.changes(seen, 0.01) == seen
        assert not commit.done()
        inner.gate.open.set()
        assert await commit == []
        await store.close()
        return inner.ran_on

    ran_on = asyncio.run(story())
    assert ran_on == {"commit": "keepstep writer", "view": "keepstep reader", "changes": "keepstep watcher"}
    assert READERS >= 2


def test_those_who_have_seen_the_same_wait_in_one_thread_and_a_look_waits_for_nobody():
    async def story():
        inner = MemoryStore(SystemClock())
        store = OffThread(inner)
        await store.open()
        seen = await store.changes(None, 0)
        waiting = [asyncio.ensure_future(store.changes(seen, 60)) for _ in range(50)]
        await asyncio.sleep(0)
        assert await store.changes(None, 0) == seen
        assert await store.changes(seen, 0) == seen
        one = waiting.pop()
        one.cancel()
        threads = [thread for thread in threading.enumerate() if thread.name == "keepstep watcher"]
        inner._content.changed()
        told = await asyncio.gather(*waiting)
        await store.close()
        return len(threads), set(told) - {seen}

    threads, told = asyncio.run(story())
    assert threads == 1
    assert len(told) == 1


def test_closing_ends_its_threads_and_further_calls_are_refused():
    async def story():
        store = OffThread(MemoryStore(SystemClock()))
        await store.open()
        await store.view("r")
        await store.close()
        with pytest.raises(StoreFailed, match="closed"):
            await store.view("r")

    before = threading.active_count()
    asyncio.run(story())
    assert threading.active_count() == before


def test_a_forked_child_has_threads_of_its_own(folder):
    from keepstep.store.directory import DirectoryStore

    store = OffThread(DirectoryStore(folder / "runs", SystemClock()))

    async def look():
        return (await store.view("r")).row

    asyncio.run(store.open())
    asyncio.run(look())

    def child():
        store.after_fork()
        return asyncio.run(look())

    assert in_child(child) is None
    asyncio.run(store.close())


# --- looking up together ---------------------------------------------------------------------------------------------


class Ledgers:
    """The part of a store that is looked up in: every key that begins with the run's name is known."""

    def __init__(self, error=None):
        self.asked = []
        self.error = error

    async def effects(self, run_id, keys):
        self.asked.append((run_id, list(keys)))
        if self.error is not None:
            raise self.error
        return [entry(key) for key in keys if key.startswith(run_id.encode())]


def lookups_in(store: Any, lane):
    return Lookups(store, lane)


def entry(key):
    return LedgerEntry(key, 1, 2, "returned")


def test_what_is_looked_up_in_one_turn_of_the_loop_is_read_together_for_each_run(lanes):
    store = Ledgers()

    async def story():
        lookups = lookups_in(store, lanes())
        asked = [("a", [b"a1"]), ("a", [b"x"]), ("b", [b"b1"]), ("a", [b"a2", b"a1"])]
        found = await asyncio.gather(*(lookups.look_up(*one) for one in asked))
        return found, await lookups.look_up("a", [b"a3"])

    found, later = asyncio.run(story())

    assert found == [[entry(b"a1")], [], [entry(b"b1")], [entry(b"a1"), entry(b"a2")]]
    assert later == [entry(b"a3")]
    assert store.asked == [("a", [b"a1", b"x", b"a2"]), ("b", [b"b1"]), ("a", [b"a3"])]


def test_who_leaves_a_look_up_disturbs_nobody(lanes):
    async def story():
        lookups = lookups_in(Ledgers(), lanes())
        leaving, staying = (asyncio.create_task(lookups.look_up("a", [key])) for key in (b"a1", b"a2"))
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        return await staying

    assert asyncio.run(story()) == [entry(b"a2")]


def test_a_look_up_that_fails_is_told_to_all_who_asked(lanes):
    store = Ledgers(StoreFailed("no."))

    async def story():
        lookups = lookups_in(store, lanes())
        told = await asyncio.gather(*(lookups.look_up("a", [key]) for key in (b"1", b"2")), return_exceptions=True)
        store.error = None
        return told, await lookups.look_up("a", [b"a1"])

    told, later = asyncio.run(story())

    assert [type(one) for one in told] == [StoreFailed] * 2
    assert later == [entry(b"a1")]
