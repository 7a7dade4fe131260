"""A step that raises is tried again by its policy, and how often outlives the process."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keepstep
from keepstep.testing import Clock
from tests.kinds import kinds_of


class Trouble(Exception):
    pass


def failing(times, *, retries=3, backoff: Any = 0.1, error=Trouble, calls=None):
    """A flow whose step raises so many times."""
    flow = keepstep.Flow("trouble", start="try")
    seen = [] if calls is None else calls

    @flow.step(name="try", retries=retries, backoff=backoff)
    def attempt(run, state):
        state["changed"] = state.get("changed", 0) + 1
        seen.append(run.memo(len, seen))
        if len(seen) <= times:
            raise error("no luck")
        return run.finish(state)

    return flow


def test_a_step_is_tried_again_from_the_stored_state(store):
    calls: list[int] = []
    outcome = failing(2, calls=calls).run(store, id="r")

    assert outcome.result == {"changed": 1}
    assert len(calls) == 3
    assert store.look("r").status == "finished"


def test_what_it_did_before_it_raised_is_in_its_ledger(store):
    calls: list[str] = []
    flow = keepstep.Flow("trouble")

    @flow.step(retries=1, backoff=0)
    def work(run, state):
        run.once(calls.append, "paid")
        run.once(calls.append, "paid again")
        if len(calls) == 2:
            calls.append("raised")
            raise Trouble

    assert flow.run(store, id="r").finished
    assert calls == ["paid", "paid again", "raised"]


def test_a_run_fails_with_the_error_once_its_step_is_given_up(store):
    calls: list[int] = []
    outcome = failing(9, retries=2, calls=calls).run(store, id="r")

    assert outcome.status == "failed"
    assert isinstance(outcome.error, Trouble)
    assert len(calls) == 3
    assert store.look("r").error["message"] == "no luck"


def test_without_retries_the_first_error_fails_the_run(store):
    assert failing(1, retries=0).run(store, id="r").status == "failed"


def test_a_short_wait_is_spent_holding_the_run(store):
    failing(1, backoff=0.5).run(store, id="r")

    assert "slept" not in kinds_of(store)


def test_during_a_long_wait_the_run_sleeps_and_is_nobodys(store, clock):
    flow = failing(1, backoff=keepstep.Backoff(first=60, jitter=0))
    begun = clock.now_us()

    outcome = flow.run(store, id="r")

    assert outcome.status == "sleeping"
    assert outcome.until.timestamp() * 1e6 == pytest.approx(begun + 60e6)
    assert flow.run(store, id="r").status == "sleeping"
    clock.turn(61)
    assert flow.run(store, id="r").result == {"changed": 1}


def test_how_often_it_was_tried_outlives_the_process(place):
    calls: list[int] = []
    flow = failing(9, retries=2, backoff=keepstep.Backoff(first=60, jitter=0), calls=calls)
    keeper = place.open()
    for number in (1, 2, 3):
        store = place.open()
        outcome = flow.run(store, id="r")
        place.kill(store)
        place.clock.turn(1000)
        assert len(calls) == number

    assert outcome.status == "failed"
    assert keeper.look("r").error["message"] == "no luck"


def test_tries_are_counted_anew_after_each_step_and_after_reopening(store):
    counts = {"one": 0, "two": 0}
    flow = keepstep.Flow("anew", start="one")

    @flow.step(retries=1, backoff=0)
    def one(run, state):
        counts["one"] += 1
        if counts["one"] == 1:
            raise Trouble
        return two

    @flow.step(retries=1, backoff=0)
    def two(run, state):
        counts["two"] += 1
        if counts["two"] < 4:
            raise Trouble

    assert flow.run(store, id="r").status == "failed"
    assert counts == {"one": 2, "two": 2}
    assert flow.run(store, id="r").status == "finished"
    assert counts == {"one": 2, "two": 4}


def test_an_interruption_is_no_failure_and_uses_up_no_try(store):
    calls = []
    flow = keepstep.Flow("interrupted")

    @flow.step(retries=1, backoff=0)
    def work(run, state):
        calls.append(1)
        if len(calls) < 4:
            raise keepstep.Stop

    for _ in range(3):
        assert flow.run(store, id="r").status == "ready"
    assert flow.run(store, id="r").finished


def test_a_doubt_is_not_tried_again(store):
    calls: list[str] = []
    flow = keepstep.Flow("doubt")

    def pay():
        calls.append("pay")
        raise TimeoutError

    @flow.step(retries=5, backoff=0)
    def work(run, state):
        run.using(key="p", unsure="raise").once(pay)

    outcome = flow.run(store, id="r")

    assert outcome.status == "failed"
    assert isinstance(outcome.error, keepstep.EffectInDoubt)
    assert calls == ["pay"]


def test_a_question_about_a_doubt_pauses_the_flow_and_an_answer_takes_it_on(store):
    calls: list[str] = []
    flow = keepstep.Flow("doubt")

    def pay():
        calls.append("pay")
        raise TimeoutError

    @flow.step(retries=5, backoff=0)
    def work(run, state):
        return run.finish(run.using(key="p").once(pay))

    gate = flow.run(store, id="r").gates[0]
    store.answer(gate, {"outcome": "happened", "result": "paid"})

    assert flow.run(store, id="r").result == "paid"
    assert calls == ["pay"]


def test_bad_input_is_not_tried_again(store):
    calls = []
    flow = keepstep.Flow("wrong")

    @flow.step(retries=5, backoff=0)
    def work(run, state):
        calls.append(1)
        run.memo(object)

    assert flow.run(store, id="r").status == "failed"
    assert calls == [1]


def test_a_cancelled_run_is_not_tried_again(store):
    calls = []
    flow = keepstep.Flow("cancelled")

    @flow.step(retries=5, backoff=0)
    def work(run, state):
        calls.append(1)
        store.cancel("r")
        run.note("still here")

    assert flow.run(store, id="r").status == "cancelled"
    assert calls == [1]


def test_a_run_that_was_lost_to_another_is_left_alone(place):
    store, thief = place.open(), place.open()
    flow = keepstep.Flow("lost")

    @flow.step(retries=5, backoff=0)
    def work(run, state):
        place.freeze(store)
        place.beat(thief) if thief._session._engine.ownership._heart else None
        thief.claim("r", "lost")
        run.note("too late")

    outcome = flow.run(store, id="r")

    assert isinstance(outcome.error, keepstep.ClaimLost)
    assert outcome.status == "running"


def test_trouble_of_the_store_is_none_of_the_runs(store):
    flow = keepstep.Flow("busy")
    calls = []

    @flow.step(retries=5, backoff=0)
    def work(run, state):
        calls.append(1)
        raise keepstep.StoreBusy("others kept it locked")

    assert flow.run(store, id="r").status == "ready"
    assert calls == [1]


# --- timeouts --------------------------------------------------------------------------------------------------------


def test_a_plain_step_over_its_time_is_told_by_its_next_call(store, clock):
    calls = []
    flow = keepstep.Flow("slow")

    @flow.step(timeout="10s", retries=1, backoff=0)
    def work(run, state):
        calls.append(1)
        if len(calls) == 1:
            clock.turn(11)
            run.note("too late")
        run.note("in time")
        return run.finish("done")

    assert flow.run(store, id="r").result == "done"
    assert len(calls) == 2


def test_a_plain_step_that_returned_is_done_however_long_it_took(store, clock):
    flow = keepstep.Flow("slow")

    @flow.step(timeout="10s")
    def work(run, state):
        clock.turn(11)
        return "then"

    @flow.step
    def then(run, state):
        return run.finish("done")

    assert flow.run(store, id="r").result == "done"


def test_an_async_step_over_its_time_is_cancelled(loop_store):
    store = loop_store
    flow = keepstep.Flow("slow")

    @flow.step(timeout=0.05)
    async def work(run, state):
        await asyncio.sleep(600)

    outcome = flow.run(store, id="r")

    assert isinstance(outcome.error, keepstep.StepTimedOut)
    assert outcome.error.step == "work"
    assert store.look("r").status == "failed"


def test_a_call_that_a_timeout_cut_off_is_in_doubt(loop_store):
    store = loop_store
    flow = keepstep.Flow("slow")
    calls = []

    async def pay():
        calls.append(1)
        await asyncio.sleep(600)

    @flow.step(timeout=0.05, retries=3, backoff=0)
    async def work(run, state):
        await run.using(key="p").once(pay)

    outcome = flow.run(store, id="r")

    assert outcome.status == "paused"
    assert store.gate(outcome.gates[0]).about == "doubt"
    assert calls == [1]


def test_a_timeout_of_the_steps_own_is_its_own(store):
    flow = keepstep.Flow("slow")

    @flow.step(timeout=60)
    def work(run, state):
        raise TimeoutError("of the network")

    assert type(flow.run(store, id="r").error) is TimeoutError


# --- the rules together ----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=4),
    st.floats(0, 10),
)
def test_a_flow_fails_exactly_when_a_step_raises_more_often_than_it_is_tried_again(steps, first):
    """`steps` are (retries, how often it raises)."""
    clock = Clock()
    flow = keepstep.Flow("any", start="step 0")
    calls = [0] * len(steps)

    def make(number, raises, then):
        def step(run, state):
            calls[number] += 1
            if calls[number] <= raises:
                raise Trouble
            return then

        return step

    for number, (retries, raises) in enumerate(steps):
        then = f"step {number + 1}" if number + 1 < len(steps) else None
        flow.step(name=f"step {number}", retries=retries, backoff=first)(make(number, raises, then))
    store = keepstep.open("memory:", clock=clock)
    outcome = flow.run(store, id="r")
    while outcome.status == "sleeping":
        clock.turn(301)
        outcome = flow.run(store, id="r")

    expected = []
    for retries, raises in steps:
        expected.append(min(raises, retries) + 1)
        if raises > retries:
            break
    assert [count for count in calls if count] == expected
    assert outcome.status == ("failed" if any(raises > retries for retries, raises in steps) else "finished")
    assert store.verify("r").ok
    store.close()
