"""After `os.fork` a child has no connection, no owner and no claims of its parent; the parent notices nothing."""

import asyncio
import os
import threading

import pytest

import keepstep
from tests.children import Child, in_child, in_children
from tests.conftest import KINDS_ON_DISK


def raised(work):
    """The name of the error that the work raises."""
    try:
        work()
    except BaseException as error:
        return type(error).__name__
    return None


# --- the store -------------------------------------------------------------------------------------------------------


def test_a_child_uses_the_store_it_inherited_by_itself(shared):
    store = shared()
    store.save("r", {"n": 1}, workflow="w")

    def work():
        state = store.load("r").state
        store.save("r", {"n": 2})
        with store.run("c", "w") as run:
            run.save({"by": "child"})
            run.finish("done")
        store.close()
        return state

    assert in_child(work) == {"n": 1}
    assert store.load("r").state == {"n": 2}
    assert store.look("c").result == "done"
    store.save("r", {"n": 3})
    assert store.verify("r").ok


def test_a_child_is_another_owner(shared):
    store = shared()
    with store.run("p", "w") as run:

        def work():
            with store.run("c", "w"):
                return store.look("c").holder, store.look("p").holder, raised(lambda: store.claim("p"))

        own, parents, refused = in_child(work)

        assert own.owner != parents.owner == store.look("p").holder.owner
        assert own.stands
        assert parents.stands
        assert refused == "RunHeld"
        run.save([1])


def test_what_a_child_saved_is_seen_by_plain_saves_of_the_parent(shared):
    store = shared()
    store.save("r", {"text": "words " * 100, "n": 0}, workflow="w")

    for number in range(1, 6):
        if number % 2:
            in_child(lambda number=number: store.save("r", {"text": "words " * 100, "n": number}))
        else:
            store.save("r", {"text": "words " * 100, "n": number})

    assert [store.at("r", step=step).state["n"] for step in range(1, 7)] == list(range(6))
    assert store.verify("r").ok


@pytest.mark.parametrize("shared", KINDS_ON_DISK, indirect=True)
def test_a_child_that_was_killed_leaves_its_run_at_once(shared, baton):
    store = shared(lease="1h")

    def work():
        store.claim("r", "w").save([1])
        baton.give()
        os.read(os.pipe()[0], 1)

    child = Child(work)
    baton.take()
    with pytest.raises(keepstep.RunHeld):
        store.claim("r")

    child.kill()

    with store.run("r") as run:
        assert (run.state, run.deaths) == ([1], 1)


def test_a_store_in_memory_is_not_used_by_a_child():
    with keepstep.open("memory:") as store, store.run("r", "w") as run:
        run.save([1])

        def work():
            verbs = (lambda: store.load("r"), lambda: store.save("r", [2]), lambda: store.claim("r"), store.runs)
            return [raised(verb) for verb in verbs]

        assert in_child(work) == ["WrongUse"] * 4
        run.save([2])
        assert store.load("r").state == [2]


# --- a handle --------------------------------------------------------------------------------------------------------


def test_a_handle_in_a_child_raises_and_its_parent_goes_on(shared):
    store = shared()
    with store.run("r", "w") as run:
        run.save([1])

        def work():
            verbs = (
                lambda: run.save([2]),
                lambda: run.finish(),  # noqa: PLW0108 - all are calls
                lambda: run.note("x"),
                lambda: run.tag(a=1),
                lambda: run.close(),  # noqa: PLW0108
            )
            return [raised(verb) for verb in verbs], run.state

        assert in_child(work) == (["WrongUse"] * 5, [1])
        assert run.save([2]) == 2

    assert store.load("r").state == [2]
    assert store.verify("r").ok


@pytest.mark.parametrize("error", [None, ValueError(), KeyboardInterrupt()], ids=repr)
def test_a_child_that_leaves_the_block_leaves_the_run_to_its_parent(shared, error):
    store = shared()
    with store.run("r", "w") as run:
        in_child(lambda: run.__exit__(type(error), error, None) if error else run.__exit__(None, None, None))

        assert store.look("r").status == "running"
        run.save([1])

    assert store.look("r").status == "ready"


def test_a_child_that_closes_the_store_closes_it_for_itself(shared):
    store = shared()
    with store.run("r", "w") as run:
        assert in_child(lambda: (store.close(), raised(lambda: store.load("r")))[1]) == "WrongUse"

        run.save([1])
        other = shared()
        with pytest.raises(keepstep.RunHeld):
            other.claim("r")


# --- many ------------------------------------------------------------------------------------------------------------


def test_a_prefork_server_shares_its_runs(shared):
    store = shared()
    for number in range(20):
        store.save(f"r{number}", {"n": number}, workflow="w")

    def work():
        done = []
        while claimed := store.claim_due("w", limit=2):
            for run in claimed:
                run.save({"n": run.state["n"], "by": os.getpid()})
                run.finish(run.state["n"])
                done.append(run.id)
        store.close()
        return done

    done = [run_id for one in in_children([work] * 3) for run_id in one]

    assert sorted(done) == sorted(f"r{number}" for number in range(20))
    assert len(store.runs(status="finished").items) == 20
    assert all(store.look(f"r{number}").result == number for number in range(20))
    store.save("after", {}, workflow="w")


def test_forking_while_other_threads_write_harms_nobody(shared):
    store = shared()
    stop = threading.Event()
    saved = []

    def write():
        with store.run("p", "w") as run:
            while not stop.is_set():
                saved.append(run.save({"n": len(saved), "text": "words " * 50}))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(6):
            assert in_child(lambda number=number: store.save("c", {"n": number}, workflow="w")) == number + 1
    finally:
        stop.set()
        writer.join()

    assert saved == list(range(1, len(saved) + 1))
    assert store.load("p").step == len(saved)
    assert store.load("c").step == 6
    assert store.verify("p").ok
    assert store.verify("c").ok


def test_a_grandchild_is_a_child(shared):
    store = shared()
    with store.run("r", "w") as run:

        def work():
            store.claim("child", "w")
            return in_child(lambda: (raised(lambda: run.save([2])), store.look("child").holder.stands))

        assert in_child(work) == ("WrongUse", True)
        run.save([1])


# --- async -----------------------------------------------------------------------------------------------------------


def test_an_async_store_is_used_by_children_on_loops_of_their_own(shared):
    url = shared().url

    async def parent():
        store = await keepstep.open_async(url)
        await store.save("r", {"n": 1}, workflow="w")
        run = await store.claim("p", "w")
        await run.save([1])
        return store, run

    async def child(store, run, number):
        async with store.run(f"c{number}", "w") as own:
            await own.save({"n": (await store.load("r")).state["n"]})
            await own.finish(number)
        try:
            await run.save([2])
        except keepstep.WrongUse:
            await store.close()
            return "refused"

    with asyncio.Runner() as runner:
        store, run = runner.run(parent())
        works = [lambda number=number: asyncio.run(child(store, run, number)) for number in range(2)]
        assert in_children(works) == ["refused"] * 2

        async def after():
            assert await run.save([2]) == 2
            assert (await store.look("c1")).result == 1
            await store.close()

        runner.run(after())
