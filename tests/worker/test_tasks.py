"""A worker on an event loop: async steps are tasks, and are interrupted when the grace time is over."""

import asyncio

import keepstep

LIMIT = 50


def test_async_steps_are_carried_at_once_in_one_thread():
    flow = keepstep.Flow("meeting")

    async def main():
        at_once, all_here = 0, asyncio.Event()

        @flow.step
        async def meet(run, state):
            nonlocal at_once
            at_once += 1
            if at_once == 20:
                all_here.set()
            await asyncio.wait_for(all_here.wait(), LIMIT)
            return run.finish(await run.memo(str, state))

        async with keepstep.open_async("memory:") as store, store.worker(flow, concurrency=20):
            handles = [await store.start(flow, number) for number in range(20)]
            return await asyncio.gather(*(one.result(timeout=LIMIT) for one in handles))

    assert asyncio.run(main()) == [str(number) for number in range(20)]


def test_an_async_step_is_interrupted_when_the_grace_is_over():
    flow, left = keepstep.Flow("endless"), []

    async def main():
        begun = asyncio.Event()

        @flow.step
        async def wait_for_ever(run, state):
            begun.set()
            try:
                await asyncio.sleep(3600)
            finally:
                left.append(run.id)

        async with keepstep.open_async("memory:") as store:
            async with store.worker(flow, grace=0):
                await store.start(flow, {}, id="r")
                await asyncio.wait_for(begun.wait(), LIMIT)
            return await store.look("r")

    look = asyncio.run(main())

    assert look.status == "ready"
    assert left == ["r"]


def test_who_is_cancelled_in_the_block_leaves_at_once_and_what_is_carried_is_given_back():
    flow = keepstep.Flow("endless")

    async def main():
        begun = asyncio.Event()

        @flow.step
        async def wait_for_ever(run, state):
            begun.set()
            await asyncio.sleep(3600)

        async with keepstep.open_async("memory:") as store:

            async def serve():
                async with store.worker(flow, grace=3600):
                    await store.start(flow, {}, id="r")
                    await asyncio.sleep(3600)

            serving = asyncio.create_task(serve())
            await asyncio.wait_for(begun.wait(), LIMIT)
            serving.cancel()
            await asyncio.sleep(0)
            serving.cancel()
            await asyncio.wait([serving], timeout=LIMIT)
            assert serving.cancelled()
            return await store.look("r")

    assert asyncio.run(main()).status == "ready"


def test_plain_steps_beside_async_ones_run_in_threads_of_their_own():
    flow = keepstep.Flow("mixed", start="plain")

    @flow.step
    def plain(run, state):
        state["plain"] = run.once(lambda: run.memo(len, "abc"))
        return "awaited"

    @flow.step
    async def awaited(run, state):
        state["awaited"] = await run.once(len, "ab")
        return run.finish(state)

    async def main():
        async with keepstep.open_async("memory:") as store, store.worker(flow, concurrency=50):
            handles = [await store.start(flow, {}) for _ in range(50)]
            return [await one.result(timeout=LIMIT) for one in handles]

    assert asyncio.run(main()) == [{"plain": 3, "awaited": 2}] * 50
