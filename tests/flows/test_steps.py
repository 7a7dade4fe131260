"""A flow carried in this process: what its steps get, what they may return, and what is stored after each."""

import dataclasses
from typing import Any

import msgspec
import pydantic
import pytest

import keepstep
from tests.kinds import kinds_of


def refund_flow(calls=None):
    """Three steps, of which the second is skipped for small orders."""
    flow = keepstep.Flow("refund", start="assess")
    seen = [] if calls is None else calls

    @flow.step
    def assess(run, state):
        seen.append("assess")
        state["risk"] = run.memo(lambda order: order // 2, state["order"])
        return "check" if state["risk"] > 3 else pay

    @flow.step
    def check(run, state):
        seen.append("check")
        state["ok"] = run.confirm("Pay it?")
        return pay if state["ok"] else run.finish("refused")

    @flow.step
    def pay(run, state):
        seen.append("pay")
        state["paid"] = run.once(lambda: state["order"])
        return run.finish({"paid": state["paid"]})

    return flow


def test_a_flow_goes_from_step_to_step_to_its_end(store):
    outcome = refund_flow().run(store, {"order": 4}, id="r")

    assert outcome.finished
    assert outcome.result == {"paid": 4}
    look = store.look("r")
    assert look.workflow == "refund"
    assert look.state == {"order": 4, "risk": 2, "paid": 4}


def test_each_step_is_one_append_and_the_last_one_is_saved_with_the_end(store):
    refund_flow().run(store, {"order": 4}, id="r")

    checkpoints = store.history("r", newest_first=False).items
    assert [(one.step, one.next) for one in checkpoints] == [(0, "assess"), (1, "pay"), (2, None)]
    assert kinds_of(store)[:3] == ["opened", "saved", "claimed"]
    assert kinds_of(store)[-2:] == ["saved", "finished"]


def test_a_flow_that_waits_goes_on_where_it_was_when_it_is_carried_again(store):
    calls: list[str] = []
    flow = refund_flow(calls)
    first = flow.run(store, {"order": 40}, id="r")
    again = flow.run(store, id="r")
    store.answer(first.gates[0], True)

    last = flow.run(store, id="r")

    assert (first.status, again.status, again.gates) == ("paused", "paused", first.gates)
    assert last.result == {"paid": 40}
    assert calls == ["assess", "check", "check", "pay"]


def test_a_store_carries_a_flow_like_any_function(store):
    outcome = store.carry(refund_flow(), "r", input={"order": 2}, tags={"customer": "ada"})

    assert outcome.result == {"paid": 2}
    assert store.look("r").tags == {"customer": "ada"}


def test_a_finished_run_is_not_carried_again(store):
    calls: list[str] = []
    flow = refund_flow(calls)
    flow.run(store, {"order": 2}, id="r")
    before = len(calls)

    assert flow.run(store, {"order": 2}, id="r").result == {"paid": 2}
    assert len(calls) == before


def test_without_an_id_each_run_is_another(store):
    flow = refund_flow()

    ids = {flow.run(store, {"order": 1}).run_id for _ in range(3)}

    assert len(ids) == 3
    assert all(one.startswith("refund-") for one in ids)


def test_a_step_that_returns_nothing_finishes_with_the_state(store):
    flow = keepstep.Flow("count")

    @flow.step
    def count(run, state):
        state["n"] = state.get("n", 0) + 1

    assert flow.run(store, {"n": 4}, id="r").result == {"n": 5}
    assert flow.run(store, id="s").result == {"n": 1}


def test_a_state_that_is_no_dict_goes_on_with_next(store):
    flow = keepstep.Flow("double", start="twice")

    @flow.step
    def twice(run, state):
        return keepstep.Next("twice", state * 2) if state < 100 else keepstep.Next(None, ("end", state))

    assert flow.run(store, 7, id="r").result == ("end", 112)
    assert [store.at("r", step=step).state for step in range(3)] == [7, 14, 28]


def test_a_step_may_have_another_name_than_its_function(store):
    flow = keepstep.Flow("named", start="first step")

    @flow.step(name="first step")
    def one(run, state):
        return two

    @flow.step(name="zwei")
    def two(run, state):
        return run.finish(run.next)

    assert flow.run(store, id="r").result == "zwei"


def test_a_step_that_does_not_exist_fails_the_run_and_the_error_lists_the_steps(store):
    flow = keepstep.Flow("lost", start="begin")

    @flow.step
    def begin(run, state):
        return "nowhere"

    @flow.step
    def there(run, state):
        return None

    outcome = flow.run(store, id="r")

    assert outcome.status == "failed"
    assert isinstance(outcome.error, keepstep.NoSuchStep)
    assert outcome.error.steps == ("begin", "there")
    assert "begin, there" in store.look("r").error["message"]


@pytest.mark.parametrize("wrong", [7, {"n": 1}, True, len])
def test_what_is_no_step_fails_the_run(store, wrong):
    flow = keepstep.Flow("lost")

    @flow.step
    def begin(run, state):
        return wrong

    assert isinstance(flow.run(store, id="r").error, keepstep.NoSuchStep)


def test_a_flow_that_goes_in_circles_ends_with_a_clear_failure(store):
    flow = keepstep.Flow("circle", start="again", max_steps=5)
    calls = []

    @flow.step
    def again(run, state):
        calls.append(run.step)
        return again

    outcome = flow.run(store, id="r")

    assert isinstance(outcome.error, keepstep.TooManySteps)
    assert "max_steps" in store.look("r").error["message"]
    assert calls == [0, 1, 2, 3, 4]


def test_a_step_that_is_cut_off_runs_again_from_the_stored_state_with_its_ledger(store):
    calls = []
    flow = keepstep.Flow("cut", start="work")

    @flow.step
    def work(run, state):
        state["n"] += 1
        run.once(calls.append, "paid")
        if len(calls) == 1:
            calls.append("cut")
            raise keepstep.Stop
        return run.finish(state["n"])

    first = flow.run(store, {"n": 1}, id="r")

    assert first.status == "ready"
    assert flow.run(store, id="r").result == 2
    assert calls == ["paid", "cut"]


def test_a_checkpoint_in_the_middle_of_a_step_comes_back_to_that_step(place):
    store = place.open()
    flow = keepstep.Flow("long", start="begin")

    @flow.step
    def begin(run, state):
        return work

    def in_the_middle(run, state):
        while len(state["done"]) < 3:
            state["done"].append(len(state["done"]))
            saved = run.save(state)
            if hasattr(saved, "send"):
                raise AssertionError("a plain step needs no await")
            if len(state["done"]) == 2:
                raise keepstep.Stop

    work = flow.step(name="work")(in_the_middle)
    flow.run(store, {"done": []}, id="r")

    assert store.look("r").next == "work"
    assert flow.run(store, id="r").result == {"done": [0, 1, 2]}


def test_a_run_that_was_saved_without_a_flow_is_carried_from_its_next_step(store):
    store.save("r", {"order": 9, "risk": 0}, next="pay", workflow="refund")

    assert refund_flow().run(store, id="r").result == {"paid": 9}


def test_finish_saves_what_the_step_changed(store):
    flow = keepstep.Flow("end")

    @flow.step
    def only(run, state):
        state["seen"] = True
        run.finish("done")
        return "whatever comes after the end"

    assert flow.run(store, id="r").result == "done"
    assert store.look("r").state == {"seen": True}


# --- typed states ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Order:
    number: int
    notes: list[str] = dataclasses.field(default_factory=list)


class OrderStruct(msgspec.Struct):
    number: int
    notes: list[str] = []


class OrderModel(pydantic.BaseModel):
    number: int
    notes: list[str] = []


@pytest.mark.parametrize("kind", [Order, OrderStruct, OrderModel])
def test_a_state_has_the_type_that_the_flow_says(store, kind):
    flow = keepstep.Flow("typed", start="note", state=kind)

    @flow.step
    def note(run, state):
        assert type(state) is kind
        state.notes.append(f"saw {state.number}")
        return last if len(state.notes) == 2 else note

    @flow.step
    def last(run, state):
        return None

    outcome = flow.run(store, {"number": 7}, id="r")
    other = flow.run(store, kind(number=8), id="s")

    assert outcome.result == kind(number=7, notes=["saw 7", "saw 7"])
    assert other.result.number == 8
    assert store.handle("r", flow).look().state == outcome.result
    assert store.handle("r", flow).result() == outcome.result


def test_input_that_does_not_fit_the_type_starts_nothing(store):
    flow = keepstep.Flow("typed", state=Order)

    @flow.step
    def only(run, state):
        return None

    for wrong in ({"nummer": 7}, [7], "x"):
        with pytest.raises(keepstep.BadInput, match="input of flow 'typed'"):
            flow.run(store, wrong, id="r")
    with pytest.raises(keepstep.NoSuchRun):
        store.look("r")


# --- flows that are one function -------------------------------------------------------------------------------------


def test_a_function_of_a_run_can_be_a_flow(store):
    @keepstep.flow("report")
    def report(run):
        state = run.state or {"left": 2, "lines": []}
        while state["left"]:
            state["left"] -= 1
            state["lines"].append(run.memo(str, state["left"]))
            run.save(state, next="line")

    assert report.run(store, id="r").result == {"left": 0, "lines": ["1", "0"]}
    assert report.run(store, {"left": 1, "lines": ["x"]}, id="s").result == {"left": 0, "lines": ["x", "0"]}
    assert [one.next for one in store.history("r").items] == ["line", "line"]


def test_what_a_function_returns_is_the_result(store):
    @keepstep.flow("report")
    def report(run):
        return ["line"]

    assert report.run(store, id="r").result == ["line"]


def test_a_coroutine_function_of_a_run_can_be_a_flow_on_an_event_loop(loop_store):
    @keepstep.flow("report", state=Order)
    async def report(run):
        run.state.notes.append(await run.memo(str, run.state.number))
        await run.save(run.state)

    assert report.run(loop_store, {"number": 7}, id="r").result == Order(7, ["7"])


# --- steps on an event loop ------------------------------------------------------------------------------------------


def test_async_and_plain_steps_mix_on_an_async_store(loop_store):
    store = loop_store
    flow = keepstep.Flow("mixed", start="one")

    @flow.step
    async def one(run, state):
        state["one"] = await run.memo(lambda: 1)
        return two

    @flow.step
    def two(run, state):
        state["two"] = run.gather(lambda: run.memo(len, "ab"), lambda: run.once(len, "abc"))
        run.note("half")
        return three

    @flow.step
    async def three(run, state):
        return await run.finish(state) if state["one"] else run.finish(None)

    @flow.step
    async def unreached(run, state):
        return None

    assert flow.run(store, id="r").result == {"one": 1, "two": [2, 3]}
    assert store.look("r").note == "half"


def test_what_an_async_step_finishes_with_may_be_awaited_or_returned(loop_store):
    flow = keepstep.Flow("returned")

    @flow.step
    async def returned(run, state):
        state["n"] = 1
        return run.finish("end")

    assert flow.run(loop_store, id="r").result == "end"
    assert loop_store.look("r").state == {"n": 1}


def test_a_sync_store_refuses_async_steps_and_says_which_store_takes_them():
    flow = keepstep.Flow("refused")

    @flow.step
    async def awaited(run, state):
        return None

    with keepstep.open("memory:") as store:
        outcome = flow.run(store, id="r")

    assert isinstance(outcome.error, keepstep.WrongUse)
    assert "open_async" in str(outcome.error)


# --- flows that are put together wrongly -----------------------------------------------------------------------------


def test_a_flow_without_its_start_step_starts_nothing(store):
    flow = keepstep.Flow("bad", start="begin")
    with pytest.raises(keepstep.BadInput, match="no steps"):
        flow.run(store, id="r")

    @flow.step
    def other(run, state):
        return None

    with pytest.raises(keepstep.BadInput, match="'begin', which is no step of it: other"):
        flow.run(store, id="r")
    with pytest.raises(keepstep.BadInput):
        store.start(flow, id="r")
    with pytest.raises(keepstep.NoSuchRun):
        store.look("r")


def test_two_steps_of_one_name_are_refused():
    flow = keepstep.Flow("twice")
    flow.step(name="one")(lambda run, state: None)

    with pytest.raises(keepstep.BadInput, match="has a step 'one' already"):
        flow.step(name="one")(lambda run, state: None)


def make_step(**options: Any):
    return keepstep.Flow("bad").step(**options)(lambda run, state: None)


WRONG: Any = 7


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: keepstep.Flow(""), "name="),
        (lambda: keepstep.Flow(WRONG), "name="),
        (lambda: keepstep.Flow("n" * 300), "name="),
        (lambda: keepstep.Flow("bad", start=WRONG), "start="),
        (lambda: keepstep.Flow("bad", version=WRONG / 2), "version="),
        (lambda: keepstep.Flow("bad", max_steps=0), "max_steps="),
        (lambda: keepstep.Flow("bad", max_steps=True), "max_steps="),
        (lambda: make_step(retries=-1), "retries="),
        (lambda: make_step(retries="3"), "retries="),
        (lambda: make_step(backoff="long"), "backoff="),
        (lambda: make_step(timeout="soon"), "timeout="),
        (lambda: make_step(name=""), "name="),
        (lambda: keepstep.Flow("bad").step(lambda run: None), "takes \\(run, state\\)"),
        (lambda: keepstep.Flow("bad").step(WRONG), "function"),
        (lambda: keepstep.flow("bad")(WRONG), "function"),
        (lambda: keepstep.flow("bad")(lambda run: None).step(lambda run, state: None), "one function"),
    ],
)
def test_what_cannot_be_a_flow_or_a_step_is_refused_at_once(make, said):
    with pytest.raises(keepstep.BadInput, match=said):
        make()


def test_what_a_flow_says_itself_cannot_be_said_beside_it(store):
    for said in ({"workflow": "other"}, {"state": Order}, {"version": 2}, {"lift": {1: dict}}):
        with pytest.raises(keepstep.BadInput, match="leave it out"):
            store.carry(refund_flow(), "r", **said)
    with pytest.raises(keepstep.BadInput, match="input= is for flows"):
        store.carry(lambda run: None, "r", "w", input={})
