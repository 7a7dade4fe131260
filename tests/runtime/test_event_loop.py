"""Waiting on an event loop: one task, the pump, leads for all."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import threading

import pytest

from keepstep.runtime.event_loop import LoopPromise, LoopRuntime
from keepstep.store.base import Committed
from keepstep.store.commit_queue import CommitQueue
from keepstep.testing import Clock
from tests.runtime.wishes import Watched, Wish


class Here:
    """A runtime, a queue and a store, made within a loop."""

    def __init__(self) -> None:
        self.store = Watched()
        self.runtime = LoopRuntime(Clock())
        self.queue = CommitQueue(self.store, self.runtime.mutex())

    def wish(self) -> Wish:
        return Wish(self.queue, self.runtime.promise())

    async def wait(self, wish: Wish) -> object:
        return await self.runtime.wait(self.queue, wish.promise)


def on_loop(story):
    """Run a story on a loop; whatever the loop complains about fails it."""
    complaints = []

    async def told():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context["message"]))
        result = await story(Here())
        gc.collect()  # an error that nobody has taken is complained about when it is thrown away
        await asyncio.sleep(0)
        return result

    result = asyncio.run(told())
    assert not complaints
    return result


# --- promises --------------------------------------------------------------------------------------------------------


def test_a_promise_is_awaited_before_and_after_it_is_set():
    async def story(here):
        early, late = LoopPromise(), LoopPromise()
        task = asyncio.ensure_future(early.future)
        await asyncio.sleep(0)
        early.set(1)
        late.set(2)
        assert early.done
        assert early.wake()  # the pump leads: there is nobody to be woken
        return [await task, await late.future]

    assert on_loop(story) == [1, 2]


def test_a_promise_whose_task_was_cancelled_is_still_told():
    async def story(here):
        for tell in (lambda promise: promise.set(1), lambda promise: promise.fail(OSError("no"))):
            promise = LoopPromise()
            task = asyncio.ensure_future(promise.future)
            task.cancel()
            tell(promise)
            assert promise.done
        await asyncio.sleep(0)

    on_loop(story)


def test_a_failure_that_nobody_waits_for_is_no_complaint():
    async def story(here):
        LoopPromise().fail(OSError("no"))

    on_loop(story)


# --- the pump --------------------------------------------------------------------------------------------------------


def test_tasks_of_one_turn_share_a_commit():
    async def story(here):
        wishes = [here.wish() for _ in range(64)]
        outcomes = await asyncio.gather(*(here.wait(wish) for wish in wishes))
        assert all(isinstance(one, Committed) for one in outcomes)
        return here.store.sizes

    assert on_loop(story) == [64]


def test_the_pump_is_started_again_when_there_is_more():
    async def story(here):
        for _ in range(3):
            await here.wait(here.wish())
            await asyncio.sleep(0)
            assert here.queue.idle
        return here.store.sizes

    assert on_loop(story) == [1, 1, 1]


def test_a_task_that_is_cancelled_leaves_and_its_wish_is_carried_out():
    async def story(here):
        wish, other = here.wish(), here.wish()
        task = asyncio.ensure_future(here.wait(wish))
        here.store.before = task.cancel
        await here.wait(other)
        with pytest.raises(asyncio.CancelledError):
            await task
        return wish.promise.done

    assert on_loop(story)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_cancelled_pump_carries_on(steps):
    async def story(here):
        gate = here.store.gate = asyncio.Event()
        wish = here.wish()
        waiting = asyncio.ensure_future(here.wait(wish))
        here.runtime.nudge(here.queue)
        for _ in range(steps):
            await asyncio.sleep(0)
        here.runtime._pump.cancel()
        later = here.wish()
        await asyncio.sleep(0)
        gate.set()
        return [await waiting, await here.wait(later)]

    assert all(isinstance(one, Committed) for one in on_loop(story))


def test_draining_goes_on_with_a_pump_that_was_cancelled_before_its_first_step():
    async def story(here):
        wish = here.wish()
        here.runtime.nudge(here.queue)
        here.runtime._pump.cancel()
        await here.runtime.drain(here.queue)
        return wish.promise.done

    assert on_loop(story)


class Rude(Wish):
    """Does not want to hear it, which must never happen."""

    def deliver(self, outcome):
        raise LookupError("rude")


def test_when_the_pump_breaks_everybody_is_told():
    async def story(here):
        wishes = [here.wish(), Rude(here.queue, here.runtime.promise()), here.wish()]
        told = await asyncio.gather(*(here.wait(wish) for wish in wishes), return_exceptions=True)
        assert here.queue.idle
        assert isinstance(await here.wait(here.wish()), Committed)
        return told

    assert [type(one) for one in on_loop(story)] == [Committed, LookupError, LookupError]


def test_draining_waits_for_what_is_queued():
    async def story(here):
        wishes = [here.wish() for _ in range(3)]
        await here.runtime.drain(here.queue)
        await here.runtime.drain(here.queue)
        return [wish.promise.done for wish in wishes]

    assert on_loop(story) == [True] * 3


# --- calling the user's function -------------------------------------------------------------------------------------

WHO = contextvars.ContextVar("who", default="nobody")


class Callable:
    async def __call__(self):
        return threading.get_ident()


async def coroutine_function():
    return threading.get_ident()


@pytest.mark.parametrize("function", [coroutine_function, Callable(), functools.partial(coroutine_function)])
def test_a_coroutine_function_runs_on_the_loop(function):
    async def story(here):
        return await here.runtime.call(function) == threading.get_ident()

    assert on_loop(story)


def test_a_plain_function_runs_beside_the_loop_with_a_copy_of_its_context():
    async def story(here):
        WHO.set("ann")

        def plain():
            seen = WHO.get(), threading.get_ident()
            WHO.set("bob")
            return seen

        who, thread = await here.runtime.call(plain)
        assert WHO.get() == "ann"
        return who, thread != threading.get_ident()

    assert on_loop(story) == ("ann", True)


def test_what_a_plain_function_gives_is_awaited_if_it_can_be():
    async def story(here):
        return await here.runtime.call(lambda: coroutine_function()) == threading.get_ident()  # noqa: PLW0108

    assert on_loop(story)


def test_what_a_function_raises_is_raised():
    async def story(here):
        with pytest.raises(KeyError):
            await here.runtime.call(lambda: {}["x"])

    on_loop(story)


def test_pausing_lets_other_tasks_run_and_turns_the_clock():
    async def story(here):
        seen = []
        task = asyncio.ensure_future(asyncio.sleep(0, seen.append("other")))
        before = here.runtime.clock.now_us()
        await here.runtime.pause(2.5)
        await task
        return here.runtime.clock.now_us() - before, seen

    assert on_loop(story) == (2_500_000, ["other"])
