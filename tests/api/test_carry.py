"""`carry` runs a function over a run, and says how the run was left."""

import asyncio
import contextvars
from functools import partial

import pytest

import keepstep
from keepstep.log.records import Asked, Cancelled, Slept

KEY = b"k" * 16


def test_what_the_function_returns_becomes_the_result(store):
    outcome = store.carry(lambda run: {"total": 3}, "r", workflow="report")

    assert outcome == keepstep.Outcome("r", "finished", result={"total": 3})
    assert outcome.finished
    assert store.look("r").result == {"total": 3}


def test_a_function_that_returns_nothing_gives_its_last_state(store):
    def work(run):
        run.save({"n": 1})
        run.save({"n": 2})

    assert store.carry(work, "r", "w").result == {"n": 2}


@pytest.mark.parametrize("result", [0, "", [], False])
def test_an_empty_result_is_a_result(store, result):
    def work(run):
        run.save({"n": 1})
        return result

    assert store.carry(work, "r", "w").result == result


def test_a_function_may_finish_the_run_itself(store):
    def work(run):
        run.finish("mine")
        return "not this"

    assert store.carry(work, "r", "w").result == "mine"


def test_a_finished_run_is_not_carried_again(store):
    calls = []

    def work(run):
        calls.append(run.id)
        return 1

    outcomes = [store.carry(work, "r", "w") for _ in range(2)]

    assert outcomes[0] == outcomes[1]
    assert calls == ["r"]


def test_a_run_is_carried_on_from_where_it_stands(store):
    def work(run):
        state = run.state or {"todo": ["a", "b", "c"], "done": []}
        while state["todo"]:
            state["done"].append(state["todo"].pop(0))
            run.save(state)
            if len(state["done"]) == 2 and run.epoch == 1:
                raise ConnectionError("gone")
        return state["done"]

    first = store.carry(work, "r", "w")
    second = store.carry(work, "r", "w")

    assert (first.status, type(first.error)) == ("failed", ConnectionError)
    assert (second.status, second.result) == ("finished", ["a", "b", "c"])


def test_a_failure_is_told_and_not_raised(store):
    error = ValueError("no")

    def work(run):
        raise error

    outcome = store.carry(work, "r", "w")

    assert (outcome.status, outcome.result, outcome.finished) == ("failed", None, False)
    assert outcome.error is error
    assert store.look("r").error["message"] == "no"


def test_a_result_that_cannot_be_stored_is_a_failure(store):
    outcome = store.carry(lambda run: object(), "r", "w")

    assert outcome.status == "failed"
    assert isinstance(outcome.error, keepstep.CannotStore)


def test_stop_leaves_the_run_ready(store):
    def work(run):
        run.save([1])
        raise keepstep.Stop

    outcome = store.carry(work, "r", "w")

    assert (outcome.status, type(outcome.error)) == ("ready", keepstep.Stop)
    assert store.look("r").status == "ready"


def test_a_named_interruption_leaves_the_run_ready(place):
    store = place.open(interrupts=(TimeoutError,))

    def work(run):
        raise TimeoutError

    assert store.carry(work, "r", "w").status == "ready"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_stops_the_program_is_raised_and_leaves_the_run_ready(memory_store, kind):
    def work(run):
        raise kind

    with pytest.raises(kind):
        memory_store.carry(work, "r", "w")

    assert memory_store.look("r").status == "ready"


def test_a_held_run_is_not_carried(place):
    store, other = place.open(), place.open()
    other.claim("r", "w")

    outcome = store.carry(lambda run: 1, "r", "w")

    assert outcome.status == "running"
    assert isinstance(outcome.error, keepstep.RunHeld)
    assert outcome.until == other.look("r").holder.until


def test_a_run_that_waits_is_not_carried(place):
    store = place.open()
    place.leave_to_wait(store, store.claim("gate", "w"), Asked(gate="refund", key=KEY))
    until_us = place.clock.now_us() + 60_000_000
    place.leave_to_wait(store, store.claim("time", "w"), Slept(key=KEY, until_us=until_us))

    gate, time = (store.carry(lambda run: 1, run_id) for run_id in ("gate", "time"))

    assert (gate.status, gate.gates, gate.until, gate.error) == ("paused", ("refund",), None, None)
    assert (time.status, time.gates, time.until) == ("sleeping", (), store.look("time").until)


def test_a_cancelled_run_is_not_carried(place):
    store = place.open()
    store.save("r", {}, workflow="w")
    place.append(store, "r", Cancelled())

    outcome = store.carry(lambda run: 1, "r")

    assert outcome.status == "cancelled"
    assert isinstance(outcome.error, keepstep.RunCancelled)


def test_a_function_that_leaves_to_wait_is_told_so(place):
    store = place.open()

    def work(run):
        place.leave_to_wait(store, run, Asked(gate="refund", key=KEY))
        return "ignored"

    outcome = store.carry(work, "r", "w")

    assert (outcome.status, outcome.gates, outcome.result) == ("paused", ("refund",), None)


def test_a_claim_lost_on_the_way_is_told(place):
    frozen, heir = place.open(), place.open()

    def work(run):
        place.freeze(frozen)
        heir.claim("r")
        run.save([1])

    outcome = frozen.carry(work, "r", "w")

    assert outcome.status == "running"
    assert isinstance(outcome.error, keepstep.ClaimLost)


def test_a_run_deleted_on_the_way_is_told(store):
    outcome = store.carry(lambda run: store.delete("r", force=True), "r", "w")

    assert outcome.status == "deleted"
    assert isinstance(outcome.error, keepstep.RunGone)


def test_mistakes_of_the_caller_are_raised(store):
    store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.NoSuchRun):
        store.carry(lambda run: 1, "unknown")
    with pytest.raises(keepstep.WrongWorkflow):
        store.carry(lambda run: 1, "r", "another")
    for function in (None, "work", 5):
        with pytest.raises(keepstep.BadInput, match="carry"):
            store.carry(function, "r")


def test_carry_reads_the_state_as_the_type_asked_for(store):
    from dataclasses import dataclass

    @dataclass
    class Count:
        n: int = 0

    store.save("r", {"n": 5}, workflow="w")

    assert store.carry(lambda run: run.state.n + 1, "r", state=Count).result == 6


# --- sync only -------------------------------------------------------------------------------------------------------


def test_a_sync_store_refuses_a_coroutine_function(memory_store):
    async def work(run):
        return 1

    with pytest.raises(keepstep.WrongUse, match="work"):
        memory_store.carry(work, "r", "w")

    assert memory_store.runs().items == []


# --- async only ------------------------------------------------------------------------------------------------------


async def awaited(run):
    await run.save({"n": 1})
    return "async"


class Callable:
    async def __call__(self, run):
        return await awaited(run)


async def with_more(more, run):
    return await awaited(run) + more


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (awaited, "async"),
        (Callable(), "async"),
        (partial(with_more, "!"), "async!"),
        (partial(awaited), "async"),
        (lambda run: "plain", "plain"),
    ],
)
def test_an_async_store_carries_whatever_can_be_called(function, result):
    async def main():
        async with keepstep.open_async("memory:") as store:
            return await store.carry(function, "r", "w")

    assert asyncio.run(main()).result == result


def test_a_plain_function_runs_beside_the_loop_with_its_context():
    word = contextvars.ContextVar("word")

    def work(run):
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return word.get()

    async def main():
        word.set("kept")
        async with keepstep.open_async("memory:") as store:
            return await store.carry(work, "r", "w")

    assert asyncio.run(main()).result == "kept"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_stops_the_program_passes_an_async_store_too(kind):
    async def work(run):
        raise kind

    async def main():
        store = await keepstep.open_async("memory:stopped")
        await store.carry(work, "r", "w")

    with pytest.raises(kind):
        asyncio.run(main())

    with keepstep.open("memory:stopped") as store:
        assert store.look("r").status == "ready"
