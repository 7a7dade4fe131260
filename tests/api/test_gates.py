"""Questions to people: the run pauses where it asks, and goes on there with the answer."""

# ruff: noqa: PT012 - what happens inside a block, and how it leaves, is what is tested

import asyncio
import functools
import random
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Literal

import msgspec
import pytest

import keepstep
from keepstep.runtime.clock import SystemClock
from keepstep.testing import Clock
from tests.kinds import kinds_of
from tests.places import LEASE_SECONDS

HOUR = 3600.0


class Order(msgspec.Struct):
    """What a person fills in."""

    item: str
    count: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    by: date | None = None


@dataclass
class Refund:
    """The same as a dataclass."""

    approve: bool
    amount: float = 0.0


pytestmark = pytest.mark.usefixtures("whole_logs")


def ask_in(store, prompt="Go on?", run_id="r", **how):
    """The id of the gate at which a run pauses that asks this."""
    with store.run(run_id, "w") as run:
        run.ask(prompt, **how)
    return gate_of(store, run_id)


def gate_of(store, run_id="r"):
    """The only open gate of a run."""
    [gate] = store.look(run_id).gates
    return gate


def asked_in(store, prompt="Go on?", run_id="r", **how):
    """What a run gets that asks this and finishes with it."""
    with store.run(run_id) as run:
        answer = run.ask(prompt, **how)
        run.finish()
        return answer


def until(condition):
    """What it gives, once another thread has got so far."""
    for _ in range(30_000):
        if found := condition():
            return found
        threading.Event().wait(0.001)
    raise AssertionError("it does not come")


def answer_when_asked(store, run_id, value):
    """Begin to watch a run from a thread, and answer its gate when it asks."""

    def watch():
        gate = until(lambda: store.look(run_id).gates)[0]
        store.answer(gate, value, by="watcher")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


# --- pausing ---------------------------------------------------------------------------------------------------------


def test_a_run_that_asks_is_paused(store):
    after = []
    with store.run("r", "w") as run:
        run.save({"n": 1})
        assert not run.paused
        run.ask("Go on?")
        after.append("never")

    assert after == []
    assert run.paused
    look = store.look("r")
    assert (look.status, look.state, look.holder, look.error) == ("paused", {"n": 1}, None, None)
    assert len(look.gates) == 1


def test_a_paused_run_cannot_be_entered_and_names_its_gates(store):
    gate = ask_in(store)

    with pytest.raises(keepstep.RunWaiting) as caught, store.run("r", "w"):
        pass
    assert caught.value.gates == (gate,)
    assert caught.value.until is None
    assert store.due().items == []
    assert store.claim_due() == []


def test_an_answered_run_goes_on_where_it_asked(store):
    gate = ask_in(store)

    told = store.answer(gate, {"any": ["value", 1]}, by="ada")

    assert (told.id, told.status, told.answer, told.by) == (gate, "answered", {"any": ["value", 1]}, "ada")
    assert store.look("r").status == "ready"
    assert [one.run_id for one in store.due().items] == ["r"]
    assert asked_in(store) == {"any": ["value", 1]}


def test_what_was_done_before_the_question_is_not_done_again(store):
    calls = []

    def work(run):
        found = run.memo(lambda: calls.append("search") or "found")
        paid = run.once(lambda: calls.append("pay") or "paid")
        return [found, paid, run.ask("Ship it?", bool), run.once(lambda: calls.append("ship") or "shipped")]

    for _ in range(2):
        outcome = store.carry(work, "r", "w")
        if not outcome.finished:
            store.answer(outcome.gates[0], True)

    assert outcome.result == ["found", "paid", True, "shipped"]
    assert calls == ["search", "pay", "ship"]


def test_a_gate_tells_what_is_asked(store, clock):
    gate = ask_in(
        store, "Refund?", fields={"approve": bool, "why": str | None}, expires="1h", default={"approve": False}
    )

    look = store.gate(gate)
    assert (look.id, look.run_id, look.workflow, look.about, look.status) == (gate, "r", "w", "question", "open")
    assert look.prompt == "Refund?"
    assert look.schema["properties"]["approve"]["type"] == "boolean"
    assert look.default == {"approve": False}
    assert look.until - look.asked == timedelta(hours=1)
    assert (look.answer, look.by, look.answered, look.details) == (None, None, None, {})


def test_a_gate_that_is_over_tells_who_answered_and_when(store, clock):
    gate = ask_in(store)
    clock.turn(60)
    told = store.answer(gate, "yes", by="ada")

    assert store.gate(gate) == told
    assert told.answered - told.asked == timedelta(seconds=60)


def test_a_run_asks_one_question_after_another(store):
    def work(run):
        return [run.ask(f"Question {number}?", int) for number in range(3)]

    for number in range(3):
        outcome = store.carry(work, "r", "w")
        [gate] = outcome.gates
        assert store.gate(gate).prompt == f"Question {number}?"
        store.answer(gate, number * 10)

    assert store.carry(work, "r", "w").result == [0, 10, 20]


@pytest.mark.parametrize("prompt", ["", None, 5, ["Go on?"]])
def test_a_question_is_text(store, prompt):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.BadInput, match="question"):
            run.ask(prompt)
        assert not run.paused


@pytest.mark.parametrize("how", [{"fields": {}}, {"fields": {"x": object}}, {"fields": 5}, {"expires": -1},
                                 {"expires": "soon"}, {"key": ""}, {"key": 5},
                                 {"fields": bool, "default": "perhaps"}], ids=repr)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused_and_the_run_goes_on(store, how):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.BadInput):
            run.ask("Go on?", **how)
        assert not run.paused
        run.finish("went on")

    assert store.look("r").result == "went on"


def test_a_default_that_cannot_be_stored_is_refused(store):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.CannotStore):
            run.ask("Go on?", default=object())
        run.finish()


def test_a_question_after_the_block_is_refused(store):
    with store.run("r", "w") as run:
        pass
    with pytest.raises(keepstep.WrongUse):
        run.ask("Go on?")


def test_in_a_paused_run_every_further_call_raises_the_same_pause(store):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.Pause) as first:
            run.ask("Go on?")
        for verb in (
            lambda: run.ask("Another?"),
            lambda: run.memo(len, "x"),
            lambda: run.once(len, "x"),
            lambda: run.save({"n": 1}),
            lambda: run.note("x"),
            lambda: run.tag(a=1),
            lambda: run.finish(1),
            lambda: run.confirm("Sure?"),
        ):
            with pytest.raises(keepstep.Pause) as again:
                verb()
            assert again.value is first.value

    look = store.look("r")
    assert (look.status, len(look.gates), look.state, look.tags) == ("paused", 1, None, {})


# --- a pause that is swallowed ---------------------------------------------------------------------------------------


def test_a_swallowed_pause_is_raised_again_by_the_next_call(store):
    calls = []
    with store.run("r", "w") as run:
        try:
            run.ask("Go on?")
        except BaseException:
            calls.append("swallowed")
        run.memo(lambda: calls.append("never"))

    assert calls == ["swallowed"]
    assert store.look("r").status == "paused"


def test_a_pause_that_is_swallowed_to_the_end_pauses_the_run_all_the_same(store):
    with store.run("r", "w") as run, suppress(BaseException):
        run.ask("Go on?")

    gate = gate_of(store)
    assert store.look("r").status == "paused"
    store.answer(gate, 1)
    assert asked_in(store) == 1


def test_an_exception_after_a_swallowed_pause_fails_the_run(store):
    with pytest.raises(ValueError, match="mine"), store.run("r", "w") as run:
        with suppress(BaseException):
            run.ask("Go on?")
        raise ValueError("mine")

    look = store.look("r")
    assert (look.status, look.error["message"], look.gates) == ("failed", "mine", ())


def test_a_run_that_failed_with_an_open_gate_asks_again_when_it_is_opened_again(store):
    with pytest.raises(ValueError, match="mine"), store.run("r", "w") as run:
        with suppress(BaseException):
            run.ask("Go on?", int)
        raise ValueError("mine")
    assert store.inbox().items == []

    gate = ask_in(store, fields=int)

    assert store.look("r").status == "paused"
    assert [one.id for one in store.inbox().items] == [gate]
    store.answer(gate, 7)
    assert asked_in(store, fields=int) == 7


def test_a_gate_of_a_failed_run_cannot_be_answered(store):
    gates = []
    with pytest.raises(ValueError, match="mine"), store.run("r", "w") as run:
        with suppress(BaseException):
            run.ask("Go on?")
        gates.append(gate_of(store))
        raise ValueError("mine")

    with pytest.raises(keepstep.NoSuchGate):
        store.answer(gates[0], 1)

    with store.run("r"), pytest.raises(keepstep.NoSuchGate):  # nobody asks it now
        store.answer(gates[0], 1)


def test_a_pause_of_an_outer_run_leaves_an_inner_block_as_an_interruption(store):
    with store.run("outer", "w") as outer:
        with store.run("inner", "w"):
            outer.ask("Go on?")
        raise AssertionError("the pause was swallowed on its way")

    assert store.look("outer").status == "paused"
    assert store.look("inner").status == "ready"


# --- typed answers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "answer", "given"),
    [
        (None, {"any": [1, None]}, {"any": [1, None]}),
        (None, None, None),
        (bool, False, False),
        (Literal["ship", "wait"], "wait", "wait"),
        ({"amount": int, "note": str | None}, {"amount": 3}, {"amount": 3, "note": None}),
        ({"day": date}, {"day": "2026-12-31"}, {"day": date(2026, 12, 31)}),
        (Order, {"item": "tea", "by": "2026-12-31"}, Order("tea", 1, date(2026, 12, 31))),
        (Order, Order("tea", 2), Order("tea", 2)),
        (Refund, {"approve": True, "amount": 3}, Refund(approve=True, amount=3.0)),
        (list[int], [1, 2], [1, 2]),
    ],
    ids=repr,
)
def test_an_answer_has_the_types_that_were_asked_for(store, fields, answer, given):
    gate = ask_in(store, fields=fields)
    store.answer(gate, answer)

    got = asked_in(store, fields=fields)

    assert (type(got), got) == (type(given), given)


def test_an_answer_that_does_not_fit_is_told_field_by_field_and_the_run_stays_paused(store):
    gate = ask_in(store, fields=Order)
    before = store.look("r")

    with pytest.raises(keepstep.InvalidAnswer) as caught:
        store.answer(gate, {"count": 10, "by": "tomorrow", "colour": "red"})

    problems = caught.value.problems
    assert set(problems) == {"item", "count", "by", "colour"}
    assert "is missing" in problems["item"]
    assert "at most 9" in problems["count"]
    assert "2026-12-31" in problems["by"]
    assert store.look("r") == before
    store.answer(gate, {"item": "tea"})
    assert asked_in(store, fields=Order) == Order("tea")


def test_an_answer_that_cannot_be_stored_leaves_the_gate_open(store):
    gate = ask_in(store)

    with pytest.raises(keepstep.CannotStore):
        store.answer(gate, object())

    assert store.gate(gate).status == "open"


@pytest.mark.parametrize("by", ["", 5, "\ud800", "x" * 10_000])
def test_who_answers_is_named_by_text(store, by):
    gate = ask_in(store)

    with pytest.raises(keepstep.BadInput, match="by="):
        store.answer(gate, 1, by=by)

    assert store.gate(gate).status == "open"


def test_an_answer_that_does_not_fit_what_is_asked_for_now_is_told(store):
    store.answer(ask_in(store, fields={"n": int}), {"n": 1})

    with pytest.raises(keepstep.BadInput, match="fields="), store.run("r") as run:
        run.ask("Go on?", {"n": bool})

    assert asked_in(store, fields={"n": int}) == {"n": 1}


def test_confirm_asks_for_yes_or_no(store):
    def work(run):
        return run.confirm("Sure?")

    [gate] = store.carry(work, "r", "w").gates
    for wrong in ("yes", 1, None, {"yes": True}):
        with pytest.raises(keepstep.InvalidAnswer):
            store.answer(gate, wrong)
    store.answer(gate, False)

    assert store.carry(work, "r").result is False


def test_confirm_expires_into_its_default(store, clock):
    def work(run):
        return run.confirm("Sure?", expires="1h", default=False)

    assert store.carry(work, "r", "w").status == "paused"
    clock.turn(HOUR)

    assert store.carry(work, "r").result is False


# --- the first answer wins -------------------------------------------------------------------------------------------


def test_a_second_answer_is_told_who_was_first_and_when(place):
    one, two = place.open(), place.open()
    gate = ask_in(one)
    place.clock.turn(5)
    first = two.answer(gate, "yes", by="ada")
    place.clock.turn(5)

    for store in (one, two):
        with pytest.raises(keepstep.AlreadyAnswered, match="ada") as caught:
            store.answer(gate, "no", by="bob")
        assert (caught.value.by, caught.value.at, caught.value.run_id) == ("ada", first.answered, "r")
    assert asked_in(one) == "yes"


def test_a_second_answer_is_refused_even_if_it_says_the_same_or_does_not_fit(store):
    gate = ask_in(store, fields=bool)
    store.answer(gate, True)

    for value in (True, "nonsense"):
        with pytest.raises(keepstep.AlreadyAnswered, match="somebody"):
            store.answer(gate, value)


def test_an_answer_is_refused_after_the_run_has_finished(store):
    gate = ask_in(store)
    store.answer(gate, 1, by="ada")
    asked_in(store)

    with pytest.raises(keepstep.AlreadyAnswered, match="ada"):
        store.answer(gate, 2)
    assert store.gate(gate).answer == 1


def test_of_many_answers_at_once_exactly_one_wins(place):
    stores = [place.open() for _ in range(3)]
    gate = ask_in(stores[0], fields=int)
    told, start = [], threading.Barrier(9)

    def answer(number):
        start.wait()
        try:
            told.append(stores[number % 3].answer(gate, number, by=f"n{number}").answer)
        except keepstep.AlreadyAnswered as error:
            told.append(error.by)

    threads = [threading.Thread(target=answer, args=(number,), daemon=True) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    [winner] = [one for one in told if isinstance(one, int)]
    assert [one for one in told if not isinstance(one, int)] == [f"n{winner}"] * 8
    assert kinds_of(stores[0]).count("answered") == 1
    assert asked_in(stores[1], fields=int) == winner


def test_after_an_answer_one_worker_resumes_and_the_other_is_told(place):
    one, two = place.open(), place.open()
    store_gate = ask_in(one)
    two.answer(store_gate, "yes")

    with one.run("r") as run:
        with pytest.raises(keepstep.RunHeld), two.run("r"):
            pass
        assert two.claim_due() == []
        assert run.ask("Go on?") == "yes"
        run.finish()


# --- crashes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["kill", "freeze"])
def test_a_crash_after_the_answer_does_not_ask_again(place, end):
    first, second = place.open(), place.open()
    second.answer(ask_in(first), "yes")
    run = first.claim("r")
    assert run.ask("Go on?") == "yes"
    getattr(place, end)(first)

    assert asked_in(second) == "yes"
    assert kinds_of(second).count("asked") == 1


@pytest.mark.parametrize("end", ["kill", "freeze"])
def test_a_crash_between_the_question_and_the_pause_asks_once(place, end):
    first, second = place.open(), place.open()
    run = first.claim("r", "w")
    with pytest.raises(keepstep.Pause):
        run.ask("Go on?")
    getattr(place, end)(first)
    gate = gate_of(second)

    assert ask_in(second) == gate
    assert second.look("r").status == "paused"
    second.answer(gate, "yes")
    assert asked_in(second) == "yes"
    assert kinds_of(second).count("asked") == 1


def test_an_answer_reaches_a_run_whose_worker_died_while_it_asked(place):
    first, second = place.open(), place.open()
    with pytest.raises(keepstep.Pause):
        first.claim("r", "w").ask("Go on?")
    place.kill(first)

    second.answer(gate_of(second), "yes")

    [run] = second.claim_due()
    assert run.ask("Go on?") == "yes"
    run.finish()


def test_an_answer_that_comes_before_the_run_has_left_makes_it_ready(place):
    worker, person = place.open(), place.open()
    with worker.run("r", "w") as run:
        try:
            run.ask("Go on?")
        finally:
            person.answer(gate_of(person), "yes")

    assert worker.look("r").status == "ready"
    assert asked_in(worker) == "yes"


def test_a_late_worker_cannot_ask(place):
    late, heir = place.open(), place.open()
    run = late.claim("r", "w")
    place.freeze(late)
    with heir.run("r") as successor:
        with pytest.raises(keepstep.ClaimLost):
            run.ask("Go on?")
        successor.finish("by the heir")

    assert heir.inbox().items == []
    assert "asked" not in kinds_of(heir)


# --- the ids of gates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "run_id",
    ["r", "a/b?c=d&e#f%20", "réport 1", "..", "\U0001f600\n\t", "a.b", "x" * 200, "-_=+", '"', "\x00"],
    ids=ascii,
)
def test_a_gates_id_fits_into_a_url_and_names_its_run(store, run_id):
    gate = ask_in(store, run_id=run_id)

    assert set(gate) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
    assert store.gate(gate).run_id == run_id
    store.answer(gate, 1)
    assert asked_in(store, run_id=run_id) == 1


@pytest.mark.parametrize("verb", ["gate", "answer"])
@pytest.mark.parametrize(
    "gate", ["", ".", "r", "..", "cg.", ".00", "cg.xyz", "!!!!.00", "/.00", "\u2713.00", "cg\n.00", "\ud800.00",
             "7v7-.00", None, 5, b"cg.00", ["cg.00"], {"id": 1}],
    ids=ascii,
)  # fmt: skip
def test_what_is_no_gates_id_is_refused(store, gate, verb):
    ask_in(store)

    with pytest.raises(keepstep.BadInput, match="inbox"):
        store.gate(gate) if verb == "gate" else store.answer(gate, 1)


def test_an_id_is_taken_only_as_it_was_given(store):
    gate = ask_in(store)
    name, _, key = gate.partition(".")

    for other in (gate.upper(), f" {gate}", f"{gate} ", f"{name}=.{key}", f"{name}.{key[:2]} {key[2:]}", f"{gate}00"):
        with pytest.raises((keepstep.BadInput, keepstep.NoSuchGate)):
            store.answer(other, 1)

    assert store.gate(gate).status == "open"


def test_a_gate_that_is_not_there_is_told(store):
    gate = ask_in(store)
    name, _, key = gate.partition(".")
    other = ask_in(store, "Another?", run_id="other").partition(".")[2]

    for none in (f"{name}.{other}", f"bm9uZQ.{key}"):  # "none"
        with pytest.raises(keepstep.NoSuchGate) as caught:
            store.gate(none)
        assert caught.value.gate == none
        with pytest.raises(keepstep.NoSuchGate):
            store.answer(none, 1)


def test_what_is_in_the_ledger_and_no_gate_is_none(store):
    with store.run("r", "w") as run:
        run.using(key="call 1").once(len, "x")
        run.once(len, "y")
        run.ask("Go on?")
    name = gate_of(store).partition(".")[0]

    with pytest.raises(keepstep.NoSuchGate):
        store.answer(f"{name}.{store.effects('r')[1].key}", 1)


def test_a_gate_of_a_deleted_run_is_gone(store):
    gate = ask_in(store)
    store.delete("r")

    for verb in (lambda: store.gate(gate), lambda: store.answer(gate, 1)):
        with pytest.raises(keepstep.NoSuchGate):
            verb()


def test_a_gate_of_a_former_life_is_not_that_of_the_next(store):
    gate = ask_in(store)
    store.answer(gate, "for the first life")
    store.delete("r")

    assert store.gate(ask_in(store)).status == "open"


# --- which question it is --------------------------------------------------------------------------------------------


def test_the_same_question_twice_at_one_step_is_two_gates(store):
    def work(run):
        return [run.ask("How many?", int), run.ask("How many?", int)]

    gates = []
    for number in (1, 2):
        [gate] = store.carry(work, "r", "w").gates
        store.answer(gate, number)
        gates.append(gate)

    assert len(set(gates)) == 2
    assert store.carry(work, "r").result == [1, 2]


def test_the_same_question_in_another_step_is_another_gate(store):
    def work(run):
        answers = run.state or []
        while len(answers) < 3:
            answers = [*answers, run.ask("How many?", int)]
            run.save(answers)
        return answers

    for number in range(3):
        store.answer(store.carry(work, "r", "w").gates[0], number)

    assert store.carry(work, "r").result == [0, 1, 2]


def test_the_same_question_in_another_run_is_another_gate(store):
    assert ask_in(store, run_id="a") != ask_in(store, run_id="b")


def test_a_question_with_a_key_is_the_same_in_every_step_and_wording(store):
    gate = ask_in(store, "Who are you?", key="name")
    store.answer(gate, "ada")

    with store.run("r") as run:
        assert run.ask("Who are you?", key="name") == "ada"
        run.save({"n": 1})
        assert run.ask("Your name, please?", key="name") == "ada"
        run.save({"n": 2})
        run.ask("Who are you?", key="another name")

    assert store.gate(gate_of(store)).prompt == "Who are you?"
    assert gate_of(store) != gate


def test_another_question_at_the_same_step_does_not_take_the_answer(store):
    store.answer(ask_in(store, "Tea?"), "yes")

    with store.run("r") as run:
        run.ask("Coffee?")

    assert store.gate(gate_of(store)).prompt == "Coffee?"


def test_a_key_of_an_effect_is_no_key_of_a_question(store):
    with store.run("r", "w") as run:
        run.using(key="one").once(len, "xx")
        run.ask("Go on?", key="one")

    store.answer(gate_of(store), "yes")
    with store.run("r") as run:
        assert run.using(key="one").once(len, "xx") == 2
        assert run.ask("Go on?", key="one") == "yes"
        run.finish()


# --- deadlines -------------------------------------------------------------------------------------------------------


def test_a_question_that_expires_gives_its_default(store, clock):
    how = {
        "fields": {"amount": int, "day": date | None},
        "expires": "1h",
        "default": {"amount": 3, "day": date(2026, 1, 2)},
    }
    gate = ask_in(store, **how)
    clock.turn(HOUR)

    assert asked_in(store, **how) == {"amount": 3, "day": date(2026, 1, 2)}
    look = store.gate(gate)
    assert (look.status, look.answer, look.by) == ("expired", None, None)
    assert kinds_of(store).count("expired") == 1


@pytest.mark.parametrize("default", [None, False, 0, ""])
def test_an_empty_default_is_a_default(store, clock, default):
    ask_in(store, expires=60, default=default)
    clock.turn(60)

    assert asked_in(store, expires=60, default=default) == default


def test_a_question_that_expires_without_a_default_raises(store, clock):
    gate = ask_in(store, expires=timedelta(hours=1))
    clock.turn(HOUR)

    with pytest.raises(keepstep.GateExpired) as caught, store.run("r") as run:
        run.ask("Go on?", expires=timedelta(hours=1))

    assert (caught.value.run_id, caught.value.gate) == ("r", gate)
    assert store.look("r").status == "failed"


def test_an_expiry_is_recorded_once_and_stands_for_ever(place):
    store = place.open()
    gate = ask_in(store, expires=60, default="late")
    place.clock.turn(60)
    for _ in range(3):
        with store.run("r") as run:
            assert run.ask("Go on?", expires=60, default="late") == "late"
    with pytest.raises(keepstep.GateExpired):
        store.answer(gate, "later still")

    assert kinds_of(store).count("expired") == 1


def test_before_the_deadline_nothing_expires(store, clock):
    gate = ask_in(store, expires=60, default="late")
    clock.turn(59.999)

    assert store.due().items == []
    assert store.claim_due() == []
    with pytest.raises(keepstep.RunWaiting) as caught, store.run("r"):
        pass
    assert caught.value.until == store.gate(gate).until
    store.answer(gate, "in time")
    clock.turn(60)
    assert asked_in(store, expires=60, default="late") == "in time"


def test_an_answer_after_the_deadline_is_refused_and_the_expiry_recorded(store, clock):
    gate = ask_in(store, expires=60, default="late")
    clock.turn(60)
    assert "expired" not in kinds_of(store)

    for _ in range(2):
        with pytest.raises(keepstep.GateExpired):
            store.answer(gate, "too late", by="ada")

    look = store.gate(gate)
    assert (look.status, look.answer, look.by) == ("expired", None, None)
    assert store.look("r").status == "ready"
    assert asked_in(store, expires=60, default="late") == "late"
    assert kinds_of(store).count("expired") == 1


def test_a_worker_takes_a_run_whose_question_has_expired(store, clock):
    ask_in(store, expires=60, default="late")
    assert store.look("r").until is not None
    clock.turn(60)

    assert [one.run_id for one in store.due().items] == ["r"]
    [run] = store.claim_due()
    assert run.ask("Go on?", expires=60, default="late") == "late"
    run.finish()
    assert kinds_of(store).count("expired") == 1


def test_a_question_that_expires_at_once_does_not_pause(store):
    with store.run("r", "w") as run:
        assert run.ask("Go on?", expires=0, default="no time") == "no time"
        assert not run.paused
        run.finish()


def test_the_deadline_and_the_default_are_those_of_the_first_asking(store, clock):
    ask_in(store, expires=60, default="first")
    clock.turn(60)

    assert asked_in(store, expires=HOUR, default="second") == "first"


def test_a_question_that_was_asked_by_a_run_that_is_still_held_expires_too(place):
    worker, person = place.open(), place.open()
    run = worker.claim("r", "w")
    with pytest.raises(keepstep.Pause):
        run.ask("Go on?", expires=5, default="late")
    gate = gate_of(person)
    place.clock.turn(5)

    with pytest.raises(keepstep.GateExpired):
        person.answer(gate, 1)
    run.close()
    assert worker.look("r").status == "ready"
    assert asked_in(worker, expires=5, default="late") == "late"
    assert kinds_of(worker).count("expired") == 1


def test_of_two_questions_only_the_one_whose_time_has_come_expires(place):
    def work(run):
        return [
            run.ask("Short?", expires=HOUR, default="short is late", key="short"),
            run.ask("Long?", expires=10 * HOUR, default="long is late", key="long"),
        ]

    for how in ({"prompt": "Long?", "expires": 10 * HOUR, "key": "long"}, {"prompt": "Short?", "expires": HOUR,
                "default": "short is late", "key": "short"}):  # fmt: skip
        worker = place.open()
        with pytest.raises(keepstep.Pause):
            worker.claim("r", "w").ask(**how)
        place.kill(worker)
    store = place.open()
    assert len(store.carry(work, "r").gates) == 2
    place.clock.turn(HOUR)

    outcome = store.carry(work, "r")
    assert [store.gate(gate).prompt for gate in outcome.gates] == ["Long?"]
    store.answer(outcome.gates[0], "long is in time")
    assert store.carry(work, "r").result == ["short is late", "long is in time"]


# --- waiting with the claim ------------------------------------------------------------------------------------------


def test_with_wait_the_claim_is_kept_and_the_call_returns_the_answer(place):
    worker, person = place.open(lease=10_000_000.0), place.open()
    calls = []
    with worker.run("r", "w") as run:
        calls.append("once")
        thread = answer_when_asked(person, "r", {"n": 1})
        assert run.ask("Go on?", {"n": int}, wait=True) == {"n": 1}
        thread.join()
        assert not run.paused
        assert worker.look("r").status == "running"
        run.finish()

    assert calls == ["once"]
    assert worker.look("r").epoch == 1


def test_with_wait_an_expired_question_gives_its_default(store):
    with store.run("r", "w") as run:  # who waits turns this clock
        assert run.ask("Go on?", expires=5, default="late", wait=True) == "late"
        run.finish()

    assert kinds_of(store).count("expired") == 1


def test_with_wait_an_expired_question_without_a_default_raises(store):
    with pytest.raises(keepstep.GateExpired), store.run("r", "w") as run:
        run.ask("Go on?", expires=5, wait=True)


def test_a_worker_that_waited_and_lost_its_run_is_told(place):
    worker, heir = place.open(), place.open()
    with pytest.raises(keepstep.ClaimLost), worker.run("r", "w") as run:

        def take_over():
            until(lambda: heir.look("r").gates)
            place.freeze(worker)
            heir.answer(gate_of(heir), "for the heir")
            with heir.run("r") as successor:
                assert successor.ask("Go on?") == "for the heir"
                successor.finish("by the heir")

        thread = threading.Thread(target=take_over, daemon=True)
        thread.start()
        run.ask("Go on?", wait=True)
        thread.join()
        run.finish("by the late one")

    assert heir.look("r").result == "by the heir"


class Interrupted(BaseException):
    """The process ends here."""


class CutShort(Clock):
    """The time of another clock; whoever sleeps is interrupted."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def now_us(self):
        return self._clock.now_us()

    def wait(self, stop, seconds):
        return self._clock.wait(stop, seconds)

    def sleep(self, seconds):
        raise Interrupted


def test_a_worker_that_died_while_it_waited_finds_its_question_again(place):
    first, second = place.open(lease=10_000_000.0, clock=CutShort(place.clock)), place.open()
    with pytest.raises(Interrupted):
        first.claim("r", "w").ask("Go on?", wait=True)
    assert second.look("r").status == "running"
    gate = gate_of(second)
    place.kill(first)
    place.clock.turn(10_000_001.0)

    second.answer(gate, "yes")
    assert asked_in(second) == "yes"
    assert kinds_of(second).count("asked") == 1


def test_a_worker_that_waits_is_told_when_its_run_is_taken(place):
    worker, heir = place.open(), place.open()
    with pytest.raises(keepstep.ClaimLost), worker.run("r", "w") as run:

        def take_over():
            until(lambda: heir.look("r").gates)
            place.freeze(worker)
            with heir.run("r") as successor:
                successor.finish("by the heir")
            place.beat(worker)

        threading.Thread(target=take_over, daemon=True).start()
        run.ask("Go on?", wait=True)

    assert heir.look("r").result == "by the heir"


def test_a_worker_that_waits_is_told_when_its_run_is_deleted(place):
    worker, person = place.open(), place.open()
    with pytest.raises(keepstep.RunGone), worker.run("r", "w") as run:

        def delete():
            until(lambda: person.look("r").gates)
            person.delete("r", force=True)

        threading.Thread(target=delete, daemon=True).start()
        run.ask("Go on?", wait=True)


@pytest.mark.parametrize("place", ["memory-sync", "dir-sync", "sqlite-sync"], indirect=True)
@pytest.mark.parametrize("verb", ["ask", "once"])
def test_a_run_that_is_deleted_the_moment_it_has_asked_is_gone(place, verb, monkeypatch):
    worker, person = place.open(), place.open()

    def slow():
        raise TimeoutError

    with pytest.raises(keepstep.RunGone), worker.run("r", "w") as run:
        store = worker._session.engine.store
        commit = store.commit

        async def deleted_after(batch):
            outcomes = await commit(batch)
            if verb == "ask" or (len(batch[0].records) == 1 and b"doubted" in batch[0].records[0].head):
                person.delete("r", force=True)
            return outcomes

        monkeypatch.setattr(store, "commit", deleted_after)
        run.ask("Go on?") if verb == "ask" else run.using(key="k").once(slow)


# --- gather ----------------------------------------------------------------------------------------------------------

on_a_loop = pytest.mark.parametrize("place", ["memory-async", "dir-async", "sqlite-async"], indirect=True)
"""What is about the tasks of an event loop."""


def test_a_pause_in_a_gather_waits_for_the_others_and_their_results_are_recorded(place):
    worker, person = place.open(), place.open()
    calls = []

    def slow(name):
        until(lambda: person.look("r").gates)  # it goes on when the question stands, and its caller wants to leave
        calls.append(name)
        return name

    def work(run):
        return run.gather(
            lambda: run.once(slow, "paid"),
            lambda: run.memo(slow, "found"),
            lambda: run.ask("Go on?") if until(lambda: started(person)) else None,
        )

    def started(store):
        return "began" in kinds_of(store)

    outcome = worker.carry(work, "r", "w")
    assert outcome.status == "paused"
    assert {one.status for one in worker.effects("r")} == {"returned"}
    person.answer(outcome.gates[0], "yes")

    assert worker.carry(work, "r").result == ["paid", "found", "yes"]
    assert calls.count("paid") == 1


def test_several_gates_of_a_gather_are_never_crossed(place):
    store = place.open()
    count = 5

    def work(run):
        return run.gather(*(lambda number=number: run.ask(f"Question {number}?", int) for number in range(count)))

    assert answer_all(store, work, random.Random(1)) == [f"Question {number}?" for number in range(count)]


def test_equal_questions_of_a_gather_keep_their_places(place):
    store = place.open()
    chance = random.Random(2)

    def work(run):
        return run.gather(*(lambda: run.ask("How many?", int) for _ in range(3)))

    answers = {}
    while not (outcome := store.carry(work, "r", "w")).finished:
        gate = chance.choice(outcome.gates)
        answers[gate] = len(answers)
        store.answer(gate, answers[gate])
    first = outcome.result

    assert sorted(first) == [0, 1, 2]
    assert len(answers) == 3


def answer_all(store, work, chance):
    """Carry a run to its end, answering each question by its own number; gives the questions by their answers."""
    while not (outcome := store.carry(work, "r", "w")).finished:
        assert outcome.status == "paused"
        gate = store.gate(chance.choice(outcome.gates))
        store.answer(gate.id, int(gate.prompt.split()[1].rstrip("?")))
    return [f"Question {number}?" for number in outcome.result]


def test_all_questions_of_a_gather_are_asked_at_once(store):
    def work(run):
        return run.gather(*(lambda number=number: run.ask(f"Question {number}?", int) for number in range(4)))

    outcome = store.carry(work, "r", "w")

    assert sorted(store.gate(gate).prompt for gate in outcome.gates) == [f"Question {number}?" for number in range(4)]


def with_tasks(place, *works):
    """Carry a run whose block makes each of these calls as a task of a TaskGroup; they wait by the real time."""

    async def main():
        async with keepstep.open_async(place.url, clock=SystemClock(), lease=LEASE_SECONDS) as store:

            async def work(run):
                async with asyncio.TaskGroup() as tasks:
                    made = [tasks.create_task(one(run)) for one in works]
                return [one.result() for one in made]

            return await store.carry(work, "r", "w")

    return asyncio.run(main())


@on_a_loop
def test_a_task_group_that_pauses_lets_the_effects_under_way_end_first(place):
    store = place.open(clock=SystemClock())
    calls = []
    started = asyncio.Event()

    async def pay():
        started.set()
        while not await asked():  # noqa: ASYNC110 - it ends when its caller wants to leave
            await asyncio.sleep(0.001)
        calls.append("paid")
        return "paid"

    async def asked():
        return bool((await asyncio.to_thread(store.look, "r")).gates)

    async def ask(run):
        await started.wait()
        return await run.ask("Go on?")

    outcome = with_tasks(place, lambda run: run.using(key="k").once(pay), ask)
    assert (outcome.status, outcome.error) == ("paused", None)
    assert [one.status for one in store.effects("r")] == ["returned"]
    store.answer(outcome.gates[0], "yes")

    assert with_tasks(place, lambda run: run.using(key="k").once(pay), ask).result == ["paid", "yes"]
    assert calls == ["paid"]


@on_a_loop
def test_tasks_that_all_wait_pause_at_once(place):
    store = place.open(clock=SystemClock())

    async def slow():
        raise TimeoutError

    outcome = with_tasks(
        place,
        lambda run: run.ask("One?"),
        lambda run: run.using(key="a", approve="Two?").once(slow),
        lambda run: run.using(key="b").once(slow),
    )

    assert outcome.status == "paused"
    assert sorted(store.gate(gate).about for gate in outcome.gates) == ["approval", "doubt", "question"]


@on_a_loop
def test_a_task_that_fails_beside_one_that_pauses_fails_the_run(place):
    store = place.open(clock=SystemClock())

    async def fail(run):
        with pytest.raises(asyncio.CancelledError):  # the other one has paused, and its group cuts this one off
            await asyncio.sleep(3600)
        raise ValueError("broken")

    outcome = with_tasks(place, lambda run: run.ask("Go on?"), fail)

    assert outcome.status == "failed"
    assert isinstance(outcome.error, ExceptionGroup)
    assert "broken" in store.look("r").error["traceback"]


@on_a_loop
def test_a_question_inside_nested_effects_in_doubt_pauses_at_once(place):
    store = place.open(clock=SystemClock())

    async def slow():
        raise TimeoutError

    async def outer(run):
        return await run.once(slow)

    outcome = with_tasks(place, lambda run: run.using(key="k").once(functools.partial(outer, run)))

    assert outcome.status == "paused"
    assert [store.gate(gate).about for gate in outcome.gates] == ["doubt"]


@on_a_loop
def test_all_questions_of_tasks_are_asked_at_once(place):
    async def main():
        async with keepstep.open_async(place.url, clock=place.clock, lease=LEASE_SECONDS) as store:

            async def work(run):
                return await run.gather(*(run.ask(f"Question {number}?", int) for number in range(4)))

            outcome = await store.carry(work, "r", "w")
            assert (outcome.status, len(outcome.gates)) == ("paused", 4)
            for gate in reversed(outcome.gates):
                look = await store.gate(gate)
                await store.answer(gate, int(look.prompt.split()[1].rstrip("?")))
            return (await store.carry(work, "r")).result

    assert asyncio.run(main()) == [0, 1, 2, 3]


def test_a_branch_that_goes_on_after_its_answer_leaves_the_other_questions_open(store):
    shipped = []

    def branch(run, name):
        if run.ask(f"Ship {name}?", bool):
            return run.once(lambda: shipped.append(name) or name)
        return None

    def work(run):
        return run.gather(lambda: branch(run, "tea"), lambda: branch(run, "milk"))

    while not (outcome := store.carry(work, "r", "w")).finished:
        store.answer(outcome.gates[-1], store.gate(outcome.gates[-1]).prompt == "Ship tea?")

    assert outcome.result == ["tea", None]
    assert shipped == ["tea"]


# --- carry and claim -------------------------------------------------------------------------------------------------


def test_carry_tells_that_a_run_is_paused_and_by_what(store, clock):
    def work(run):
        return run.ask("Go on?", expires="1h", default="late")

    outcome = store.carry(work, "r", "w")
    assert (outcome.status, outcome.error, outcome.result) == ("paused", None, None)
    assert outcome.gates == (gate_of(store),)
    assert outcome.until == store.gate(outcome.gates[0]).until
    assert not outcome.finished

    assert store.carry(work, "r", "w") == outcome
    store.answer(outcome.gates[0], "yes")
    assert store.carry(work, "r", "w").result == "yes"


def test_a_claimed_run_that_asked_is_paused_by_close(store):
    run = store.claim("r", "w")
    with pytest.raises(keepstep.Pause):
        run.ask("Go on?")
    assert run.paused
    assert store.look("r").status == "running"

    run.close()
    run.close()

    assert store.look("r").status == "paused"


# --- any order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_in_any_order_of_answers_and_crashes_every_question_gets_its_own_answer(place, seed):
    chance = random.Random(seed)
    stores = [place.open(), place.open()]
    asked = [f"Question {number}?" for number in range(6)]
    paid = []

    def work(run):
        if run.state is None:
            first = run.ask(asked[0])
            three = run.gather(*(lambda prompt=prompt: run.ask(prompt) for prompt in asked[1:4]))
            run.once(paid.append, seed)
            run.save([first, *three])
        return [*(run.state or ()), run.ask(asked[4]), run.ask(asked[5], expires=HOUR * 10_000, default="late")]

    def enter(store):
        return store.carry(work, "r", "w")

    def die(store):
        run = store.claim("r", "w")
        with suppress(keepstep.Pause):
            work(run)
        chance.choice([place.freeze, place.kill])(store)
        stores.remove(store)
        stores.append(place.open())

    def fail(store):
        with suppress(ZeroDivisionError), store.run("r", "w") as run:
            with suppress(keepstep.Pause):
                work(run)
            raise ZeroDivisionError

    def answer(store):
        look = store.gate(chance.choice(store.look("r").gates))
        store.answer(look.id, f"of {look.prompt}")

    for _ in range(300):
        with suppress(keepstep.NothingToDo, keepstep.NoSuchRun, IndexError):
            chance.choice([enter, enter, answer, answer, answer, die, fail])(chance.choice(stores))
        if (outcome := enter(stores[0])).finished:
            break

    assert outcome.result == [f"of {prompt}" for prompt in asked]
    assert paid == [seed]
    assert (kinds_of(stores[0]).count("answered"), kinds_of(stores[0]).count("began")) == (6, 1)
