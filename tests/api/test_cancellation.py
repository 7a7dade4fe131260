"""A task that is cancelled leaves; what it had begun with a store still ends, and no run stays held for nobody.

"In every place" is meant: a piece of work is cancelled after one turn of the loop, after two, and so on to its end.
"""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

import keepstep
from keepstep.runtime.clock import SystemClock
from keepstep.store.memory import MemoryStore
from keepstep.testing import FaultyStore
from tests.conftest import KINDS
from tests.places import Place

TURNS_MAX = 500


class TurningStore(MemoryStore):
    """A store in memory that needs a turn of the loop before each operation, and one after it: no thread, no chance."""

    blocking = False

    def __init__(self):
        super().__init__(SystemClock())

    async def commit(self, batch):
        return await turned(super().commit(batch))

    async def view(self, run_id):
        return await turned(super().view(run_id))

    async def records(self, run_id, **how):
        return await turned(super().records(run_id, **how))

    async def pick(self, run_id, seqs):
        return await turned(super().pick(run_id, seqs))

    async def rows(self, query, cursor, limit):
        return await turned(super().rows(query, cursor, limit))

    async def claim(self, workflows, limit, decide):
        return await turned(super().claim(workflows, limit, decide))

    async def delete(self, run_id, decide):
        return await turned(super().delete(run_id, decide))

    async def enlist(self, owner, seconds):
        return await turned(super().enlist(owner, seconds))

    async def retire(self, owner):
        return await turned(super().retire(owner))


async def turned(operation):
    """An operation that takes turns; once begun it is done, as it is in a thread."""

    async def whole():
        await asyncio.sleep(0)
        result = await operation
        await asyncio.sleep(0)
        return result

    return await asyncio.shield(asyncio.ensure_future(whole()))


async def turns(count):
    for _ in range(count):
        await asyncio.sleep(0)


async def cancelled_after(count, work):
    """Begin the work and cancel it after so many turns; whether it was cancelled before its end."""
    task = asyncio.ensure_future(work)
    await turns(count)
    ended = task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await turns(20)
    return not ended


def in_every_place(work, check):
    """Cancel `work(store)` after one turn, after two ...; each time, `check(store)` on what is left."""

    async def once(count):
        async with keepstep.open_async(TurningStore()) as store:
            await store.save("r", {"n": 0}, workflow="w")
            cancelled = await cancelled_after(count, work(store))
            await check(store)
            return cancelled

    async def main():
        for count in range(TURNS_MAX):
            if not await once(count):
                return count
        raise AssertionError("the work does not end")

    assert asyncio.run(main()) > 3


async def is_free(store):
    """The run can be entered, goes on where it was, and nothing is wrong with it."""
    run = await store.claim("r")
    await run.save({"n": run.state["n"] + 1})
    await run.close()
    assert (await store.look("r")).status == "ready"
    assert (await store.verify("r")).ok


def test_a_cancelled_claim_is_given_back():
    async def work(store):
        run = await store.claim("r")
        await run.close()

    in_every_place(work, is_free)


def test_a_cancelled_block_leaves_the_run_ready():
    async def work(store):
        async with store.run("r") as run:
            for _ in range(3):
                await run.save({"n": run.state["n"] + 1})
                await run.note("hi")

    in_every_place(work, is_free)


def test_what_was_saved_before_the_cancellation_stands():
    saved = []

    async def work(store):
        saved.clear()
        async with store.run("r") as run:
            for number in range(1, 5):
                await run.save({"n": number})
                saved.append(number)

    async def check(store):
        found = (await store.load("r")).state["n"]
        assert found in (len(saved), len(saved) + 1)
        await is_free(store)

    in_every_place(work, check)


def test_a_cancelled_finish_ends_the_run_or_does_not():
    async def work(store):
        async with store.run("r") as run:
            await run.finish("done")

    async def check(store):
        look = await store.look("r")
        if look.status == "finished":
            assert look.result == "done"
        else:
            await is_free(store)

    in_every_place(work, check)


def test_cancelled_again_while_leaving_the_run_is_ready_all_the_same():
    async def work(store):
        inner = asyncio.ensure_future(_long_block(store))
        try:
            await inner
        except asyncio.CancelledError:
            for _ in range(5):  # whoever cancels may lose patience
                inner.cancel()
                await asyncio.sleep(0)
            raise

    in_every_place(work, is_free)


async def _long_block(store):
    async with store.run("r") as run:
        await run.save({"n": 1})
        await run.save({"n": 2})


def test_cancelled_due_claims_are_given_back():
    async def work(store):
        for run in await store.claim_due("w"):
            await run.close()

    in_every_place(work, is_free)


def test_a_cancelled_carry_leaves_the_run_ready_or_finished():
    async def carried(run):
        await run.save({"n": run.state["n"] + 1})
        await run.save({"n": run.state["n"] + 1})
        return "done"

    async def work(store):
        await store.carry(carried, "r")

    async def check(store):
        if (await store.look("r")).status != "finished":
            await is_free(store)

    in_every_place(work, check)


def test_a_cancelled_plain_save_is_whole_or_not_there():
    async def work(store):
        await store.save("r", {"n": 1, "text": "words " * 50})

    async def check(store):
        state = (await store.load("r")).state
        assert state in ({"n": 0}, {"n": 1, "text": "words " * 50})
        await store.save("r", {"n": 2, "text": "words " * 50})
        assert (await store.load("r")).state["n"] == 2
        await is_free(store)

    in_every_place(work, check)


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.fork("r", edits={"n": 5}, id="r-b"),
        lambda store: store.delete("r"),
        lambda store: store.tag("r", a=1),
        lambda store: store.look("r"),
        lambda store: store.verify("r"),
    ],
    ids=["fork", "delete", "tag", "look", "verify"],
)
def test_any_other_call_that_is_cancelled_harms_nothing(act):
    async def work(store):
        await act(store)

    async def check(store):
        if await store.load("r") is not None:
            await is_free(store)
        if await store.load("r-b") is not None:
            assert (await store.load("r-b")).state == {"n": 5}

    in_every_place(work, check)


def test_a_store_whose_closing_was_cancelled_can_be_closed():
    content = {}

    async def work(count):
        base = TurningStore()
        store = await keepstep.open_async(base)
        run = await store.claim("r", "w")
        await run.save([1])
        cancelled = await cancelled_after(count, store.close())
        await store.close()
        content["closed"] = base._closed
        return cancelled

    async def main():
        for count in range(TURNS_MAX):
            cancelled = await work(count)
            assert content["closed"]
            if not cancelled:
                return

    asyncio.run(main())


# --- on every store, whose operations go on in threads ---------------------------------------------------------------


@pytest.fixture(params=KINDS)
def url(request, folder):
    """A place for a store of each kind."""
    place = Place(request.param, "async", folder)
    yield f"memory:{request.node.name}" if request.param == "memory" else place.url
    place.close()


def test_the_commit_of_a_cancelled_save_still_ends(url):
    async def main():
        async with keepstep.open_async(url) as store, store.run("r", "w") as run:
            task = asyncio.ensure_future(run.save({"n": 1}, next="tool"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (run.step, run.state) == (1, {"n": 1})
            assert await run.save({"n": 2}) == 2
            return (await store.at("r", step=1)).state, (await store.load("r")).state

    assert asyncio.run(main()) == ({"n": 1}, {"n": 2})


def test_one_of_many_savers_is_cancelled_and_the_others_are_not(url):
    async def main():
        async with keepstep.open_async(url) as store:
            runs = [await store.claim(f"r{number}", "w") for number in range(10)]
            tasks = [asyncio.ensure_future(run.save({"n": 1})) for run in runs]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            steps = await asyncio.gather(*tasks, return_exceptions=True)
            for run in runs:
                await run.close()
            return steps, [(await store.load(run.id)).step for run in runs]

    steps, stored = asyncio.run(main())
    assert steps[1::2] == [1] * 5
    assert all(isinstance(one, asyncio.CancelledError) for one in steps[::2])
    assert stored == [1] * 10


class CancellingStore(FaultyStore):
    """Cancels a task when its n-th operation begins, or when it has been done."""

    def __init__(self, store, at, when):
        super().__init__(store, at, when)
        self.task: Any = None
        self.loop: Any = None

    async def _do(self, operation):
        self.operations += 1
        due = self.operations == self.at and self.task is not None
        if due and self.when == "before":
            self.loop.call_soon_threadsafe(self.task.cancel)
        result = await operation
        if due and self.when == "after":
            self.loop.call_soon_threadsafe(self.task.cancel)
        return result


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_task_cancelled_in_any_operation_leaves_the_run_free(url, when):
    from keepstep.api.places import store_for

    async def work(store):
        async with store.run("r", "w") as run:
            await run.save({"n": (run.state or {"n": 0})["n"] + 1})
            await run.note("hi")

    async def once(at):
        clock = SystemClock()
        cancelling = CancellingStore(store_for(url, clock, read_only=False), at, when)
        cancelling.loop = asyncio.get_running_loop()
        async with keepstep.open_async(cancelling, clock=clock) as store:
            cancelling.task = asyncio.ensure_future(work(store))
            cancelled = False
            try:
                await cancelling.task
            except asyncio.CancelledError:
                cancelled = True
            await store.save("r", {"n": 0}, workflow="w")
            async with store.run("r") as run:
                await run.save({"n": 0})
            assert (await store.verify("r")).ok
            return cancelled

    async def main():
        count = 0
        for at in range(1, 100):
            cancelled = await once(at)
            count += cancelled
            if cancelling_is_over(at, cancelled, count):
                return count
        raise AssertionError("the work does not end")

    assert asyncio.run(main()) >= 3


def cancelling_is_over(at, cancelled, count):
    """The work has fewer operations than this, or the last ones came when it had ended."""
    return at > 6 and not cancelled and count > 0


def test_a_cancelled_opening_leaves_nothing_behind(url):
    async def once(count):
        async def work():
            async with keepstep.open_async(url) as store:
                await store.save("r", {"n": 1}, workflow="w")

        return await cancelled_after(count, work())

    async def main():
        for count in range(6):
            await once(count)
        async with keepstep.open_async(url) as store:
            await store.save("r", {"n": 2}, workflow="w")
            return (await store.load("r")).state

    assert asyncio.run(main()) == {"n": 2}


def test_waiting_for_changes_can_be_cancelled(url):
    async def main():
        async with keepstep.open_async(url) as store:

            async def watch():
                async for _ in store.changes():
                    pass

            task = asyncio.ensure_future(watch())
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await store.save("r", {}, workflow="w")

    asyncio.run(main())


def test_a_deadline_around_a_wait_leaves_nothing_held(url):
    async def main():
        async with keepstep.open_async(url) as holder, keepstep.open_async(url) as waiter:
            run = await holder.claim("r", "w")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await waiter.claim("r", wait="1h")
            await run.close()
            async with waiter.run("r") as mine:
                return await mine.save([1])

    assert asyncio.run(main()) == 1
