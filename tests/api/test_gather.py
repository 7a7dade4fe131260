"""Calls made at once: all of them recorded, none crossed, none lost, and each found again by whoever resumes."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

import keepstep
from keepstep.testing import Clock

MANY = 100


class ReadTimeout(Exception):
    """An error that proves nothing."""


class Outside:
    """The outside world: counts what is done to it, in whatever thread."""

    def __init__(self):
        self.calls = []
        self._mutex = threading.Lock()

    def pay(self, name):
        with self._mutex:
            self.calls.append(name)
        return f"paid {name}"


@pytest.fixture
def outside():
    """A world in which nothing has happened yet."""
    return Outside()


@contextmanager
def under_way(call):
    """While `call(tool)` is being carried out in another thread, and its tool has begun."""
    begun, end = threading.Event(), threading.Event()

    def tool():
        begun.set()
        assert end.wait(30)
        return "slow"

    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(call, tool)
        assert begun.wait(30)
        try:
            yield tool
        finally:
            end.set()
        assert future.result(30) == "slow"


# --- many at once ----------------------------------------------------------------------------------------------------


def test_a_hundred_at_once_are_all_recorded_and_none_is_crossed_or_lost(store, outside):
    def work(run):
        return run.gather(
            *(lambda name=name: run.using(key=f"k{name}").once(outside.pay, name) for name in range(MANY))
        )

    with store.run("r", "w") as run:
        first = work(run)
    with store.run("r") as run:
        again = work(run)

    assert first == again == [f"paid {name}" for name in range(MANY)]
    assert sorted(outside.calls) == list(range(MANY))
    ledger = {one.key: (one.status, one.arguments[0], one.result) for one in store.effects("r")}
    assert ledger == {f"k{name}": ("returned", [name], f"paid {name}") for name in range(MANY)}
    assert len({one.idempotency_key for one in store.effects("r")}) == MANY
    assert store.verify("r").ok


def test_a_hundred_memos_at_once_are_all_recorded(store, outside):
    def work(run):
        return run.gather(*(lambda name=name: run.memo(outside.pay, name) for name in range(MANY)))

    with store.run("r", "w") as run:
        first = work(run)
    with store.run("r") as run:
        again = work(run)

    assert first == again == [f"paid {name}" for name in range(MANY)]
    assert sorted(outside.calls) == list(range(MANY))


def test_nothing_at_once_is_nothing(store):
    with store.run("r", "w") as run:
        assert run.gather() == []

    assert store.effects("r") == []


# --- calls without keys ----------------------------------------------------------------------------------------------


def test_calls_without_a_key_are_numbered_by_the_order_of_arguments_and_found_again(store):
    ended = [threading.Event() for _ in range(5)]
    ended[4].set()
    calls = []

    def pay(name, number):
        if not calls or len(calls) < 4:
            assert ended[number].wait(30)  # the last begins first
        calls.append(name)
        if number:
            ended[number - 1].set()
        return name

    def work(run):
        return run.gather(*(lambda n=n: run.once(pay, "abcd"[n], n + 1) for n in range(4)))

    with store.run("r", "w") as run:
        first = work(run)
    with store.run("r") as run:
        again = work(run)

    assert first == again == ["a", "b", "c", "d"]
    assert calls == ["d", "c", "b", "a"]


def test_those_that_were_done_before_the_crash_are_not_done_again(store, outside):
    def refuse(name):
        if not told:
            raise keepstep.NotDone
        return outside.pay(name)

    def work(run):
        return run.gather(
            lambda: run.once(outside.pay, "ada"), lambda: run.once(refuse, "bob"), lambda: run.once(outside.pay, "cyd")
        )

    told = []
    with suppress(keepstep.NotDone), store.run("r", "w") as run:
        work(run)
    told.append("now")
    with store.run("r") as run:
        assert work(run) == ["paid ada", "paid bob", "paid cyd"]

    assert sorted(outside.calls) == ["ada", "bob", "cyd"]


def test_each_branch_counts_its_own_calls(store, outside):
    def branch(run, name):
        return [run.once(outside.pay, f"{name}{number}") for number in range(3)]

    def work(run):
        return run.gather(lambda: branch(run, "a"), lambda: branch(run, "b"))

    with store.run("r", "w") as run:
        first = work(run)
    with store.run("r") as run:
        again = work(run)

    assert first == again
    assert sorted(outside.calls) == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_one_gather_after_another_and_one_inside_another_are_told_apart(store, outside):
    def pair(run, name):
        return run.gather(lambda: run.once(outside.pay, f"{name}1"), lambda: run.once(outside.pay, f"{name}2"))

    def work(run):
        return [pair(run, "a"), pair(run, "b"), run.gather(lambda: pair(run, "c"), lambda: pair(run, "d"))]

    with store.run("r", "w") as run:
        first = work(run)
    with store.run("r") as run:
        again = work(run)

    assert first == again
    assert sorted(outside.calls) == [f"{name}{number}" for name in "abcd" for number in (1, 2)]


def test_calls_outside_of_gather_at_the_same_time_need_keys(store):
    with store.run("r", "w") as run, under_way(run.once) as tool, pytest.raises(keepstep.KeyNeeded, match="gather"):
        run.once(tool)

    assert len(store.effects("r")) == 1


def test_a_call_that_needed_a_key_leaves_the_numbers_of_the_others_alone(store, outside):
    def work(run, *, again):
        with under_way(run.once) as tool, pytest.raises(keepstep.KeyNeeded):
            run.once(tool)
        return tool

    with store.run("r", "w") as run:
        tool = work(run, again=False)
        run.once(tool)
    with store.run("r") as run:
        assert [run.once(tool), run.once(tool)] == ["slow", "slow"]

    assert len(store.effects("r")) == 2


def test_a_key_that_is_under_way_is_in_flight(store):
    with (
        store.run("r", "w") as run,
        under_way(run.using(key="k").once) as tool,
        pytest.raises(keepstep.EffectInFlight) as caught,
    ):
        run.using(key="k").once(tool)

    assert caught.value.key == "k"
    assert [(one.key, one.status) for one in store.effects("r")] == [("k", "returned")]


def test_the_same_call_under_another_key_starts_beside_one_that_is_under_way(store, outside):
    with store.run("r", "w") as run, under_way(run.using(key="one").once):
        assert run.using(key="two").once(outside.pay, "ada") == "paid ada"

    assert sorted(one.key for one in store.effects("r")) == ["one", "two"]


# --- errors ----------------------------------------------------------------------------------------------------------


def test_an_error_is_told_when_all_have_ended(store, outside):
    failed = threading.Event()

    def fail():
        failed.set()
        raise keepstep.NotDone("no money")

    def slow():
        assert failed.wait(30)
        return outside.pay("slow")

    with pytest.raises(keepstep.NotDone, match="no money"), store.run("r", "w") as run:
        run.gather(lambda: run.using(key="fail").once(fail), lambda: run.using(key="slow").once(slow))

    assert outside.calls == ["slow"]
    assert {one.key: one.status for one in store.effects("r")} == {"fail": "raised", "slow": "returned"}


def test_of_several_errors_the_first_is_raised_and_tells_of_the_others(store):
    def fail(name):
        raise ValueError(name)

    with store.run("r", "w") as run, pytest.raises(ValueError, match="a") as caught:
        run.gather(*(lambda name=name: run.memo(fail, name) for name in ("a", "b", "c")))

    assert caught.value.__notes__ == ["In the same gather: ValueError: b", "In the same gather: ValueError: c"]


def test_a_doubt_in_one_branch_harms_no_other(store, outside):
    def slow(name):
        raise ReadTimeout(name)

    with store.run("r", "w") as run, pytest.raises(keepstep.EffectInDoubt):
        run.gather(
            lambda: run.using(key="a", unsure="raise").once(slow, "a"),
            lambda: run.using(key="b", unsure="raise").once(outside.pay, "b"),
        )

    assert {one.key: one.status for one in store.effects("r")} == {"a": "doubted", "b": "returned"}


@pytest.mark.parametrize("what", [5, "run.memo(...)", None])
def test_what_cannot_be_called_at_once_is_refused_by_the_sync_handle(memory_store, outside, what):
    with memory_store.run("r", "w") as run, pytest.raises(keepstep.BadInput, match="gather"):
        run.gather(lambda: run.once(outside.pay, "ada"), what)

    assert outside.calls == []


# --- interruptions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt(), keepstep.Stop()], ids=lambda error: type(error).__name__)
def test_an_interruption_in_one_call_is_raised_when_all_have_ended(memory_store, outside, error):
    interrupted = threading.Event()

    def interrupt():
        interrupted.set()
        raise error

    def slow():
        assert interrupted.wait(30)
        return outside.pay("slow")

    with pytest.raises(type(error)) as caught, memory_store.run("r", "w") as run:
        run.gather(lambda: run.using(key="slow").once(slow), lambda: run.using(key="cut").once(interrupt))

    assert caught.value is error
    assert outside.calls == ["slow"]
    assert {one.key: one.status for one in memory_store.effects("r")} == {"slow": "returned", "cut": "doubted"}
    assert memory_store.look("r").status == "ready"


def test_an_interruption_is_stronger_than_an_error(memory_store):
    def fail():
        raise ValueError("odd")

    def stop():
        raise keepstep.Stop

    with pytest.raises(keepstep.Stop) as caught, memory_store.run("r", "w") as run:
        run.gather(fail, stop)

    assert caught.value.__notes__ == ["In the same gather: ValueError: odd"]
    assert memory_store.look("r").status == "ready"


def test_a_cancelled_gather_ends_its_calls_first_and_leaves_them_in_doubt():
    async def main():
        begun = asyncio.Event()
        ended = []

        async def slow(name):
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(name)

        async def quick(name):
            return name

        async def work(store):
            async with store.run("r", "w") as run:
                await run.gather(run.using(key="a").once(slow, "a"), run.using(key="b").once(quick, "b"))

        async with keepstep.open_async("memory:", clock=Clock()) as store:
            task = asyncio.ensure_future(work(store))
            await begun.wait()
            while len([one for one in await store.effects("r") if one.status == "returned"]) < 1:  # noqa: ASYNC110 - no bell rings
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert ended == ["a"]
            assert {one.key: one.status for one in await store.effects("r")} == {"a": "doubted", "b": "returned"}
            assert (await store.look("r")).status == "ready"
            assert (await store.verify("r")).ok

    asyncio.run(main())


def test_tasks_of_coroutines_gather_a_hundred_at_once():
    calls = []

    async def pay(name):
        await asyncio.sleep(0)
        calls.append(name)
        return name

    async def main():
        async with keepstep.open_async("memory:", clock=Clock()) as store:
            given = []
            for _ in range(2):
                async with store.run("r", "w") as run:
                    given.append(await run.gather(*(run.once(pay, name) for name in range(MANY))))
            return given

    assert asyncio.run(main()) == [list(range(MANY))] * 2
    assert sorted(calls) == list(range(MANY))


def test_plain_tools_of_an_async_handle_gather_a_hundred_at_once(outside):
    async def main():
        async with keepstep.open_async("memory:", clock=Clock()) as store, store.run("r", "w") as run:
            return await run.gather(*(run.once(outside.pay, name) for name in range(MANY)))

    assert asyncio.run(main()) == [f"paid {name}" for name in range(MANY)]
    assert sorted(outside.calls) == list(range(MANY))
