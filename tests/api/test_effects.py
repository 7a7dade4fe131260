"""Calls to the outside: a memo is called once and remembered; what must not repeat never starts twice."""

# ruff: noqa: PT012 - what happens inside a block, and how it leaves, is what is tested

import asyncio
import functools
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

import keepstep
from keepstep.testing import Clock


class Outside:
    """The outside world: counts what is done to it."""

    def __init__(self):
        self.calls = []

    def pay(self, name, amount=1):
        self.calls.append((name, amount))
        return {"paid": amount, "to": name, "number": len(self.calls)}


@pytest.fixture
def outside():
    """A world in which nothing has happened yet."""
    return Outside()


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


def resumed(store, work, times=2):
    """What `work(run)` gives each time it is carried out from the same checkpoint."""
    given = []
    for _ in range(times):
        with store.run("r", "w") as run:
            given.append(work(run))
    return given


def declined(outside, times):
    """A tool that says so many times that nothing happened, before it pays."""

    def pay(name):
        outside.calls.append(name)
        if len(outside.calls) <= times:
            raise keepstep.NotDone("no money today")
        return len(outside.calls)

    return pay


# --- memo ------------------------------------------------------------------------------------------------------------


def test_a_memo_is_called_once_and_found_by_whoever_resumes(store, outside):
    first, second = resumed(store, lambda run: run.memo(outside.pay, "ada", amount=2))

    assert first == second == {"paid": 2, "to": "ada", "number": 1}
    assert outside.calls == [("ada", 2)]


def test_a_memo_with_other_arguments_is_another_call(store, outside):
    resumed(store, lambda run: [run.memo(outside.pay, name) for name in ("ada", "bob")])

    assert outside.calls == [("ada", 1), ("bob", 1)]


def test_equal_memos_are_told_apart_by_their_order(store, outside):
    first, second = resumed(store, lambda run: [run.memo(outside.pay, "ada")["number"] for _ in range(3)])

    assert first == second == [1, 2, 3]


def test_a_memo_after_the_next_checkpoint_is_another_call(store, outside):
    with store.run("r", "w") as run:
        before = run.memo(outside.pay, "ada")
        run.save({"n": 1})
        after = run.memo(outside.pay, "ada")

    assert (before["number"], after["number"]) == (1, 2)


def test_a_memo_that_raises_is_not_recorded(store, outside):
    def broken():
        outside.calls.append("broken")
        raise ValueError("no answer")

    for _ in range(2):
        with pytest.raises(ValueError, match="no answer"), store.run("r", "w") as run:
            run.memo(broken)

    assert outside.calls == ["broken", "broken"]
    assert store.effects("r") == []


def test_a_memo_that_was_tried_again_is_found_by_whoever_resumes(store, outside):
    model = declined(outside, times=1)

    def persistent(run):
        while True:
            with suppress(keepstep.NotDone):
                return run.memo(model, "ada")

    assert resumed(store, persistent) == [2, 2]
    assert outside.calls == ["ada", "ada"]


def test_a_memo_keeps_no_arguments(store, outside):
    with store.run("r", "w") as run:
        run.memo(outside.pay, "a secret")

    (effect,) = store.effects("r")
    assert (effect.is_memo, effect.status, effect.tool) == (True, "returned", "Outside.pay")
    assert effect.arguments is None
    assert effect.result["to"] == "a secret"


def test_a_memo_whose_result_cannot_be_stored_says_so_and_is_called_again(store, outside):
    def unstorable():
        outside.calls.append("called")
        return object()

    for _ in range(2):
        with pytest.raises(keepstep.CannotStore), store.run("r", "w") as run:
            run.memo(unstorable)

    assert outside.calls == ["called", "called"]


# --- once ------------------------------------------------------------------------------------------------------------


def test_what_returned_does_not_run_again(store, outside):
    first, second = resumed(store, lambda run: run.once(outside.pay, "ada", amount=420))

    assert first == second == {"paid": 420, "to": "ada", "number": 1}
    assert outside.calls == [("ada", 420)]


def test_the_beginning_is_durable_before_the_call_and_the_outcome_after_it(store):
    seen = []

    def look():
        seen.extend(store.effects("r"))
        return "done"

    with store.run("r", "w") as run:
        run.using(key="call-1", target="card 7").once(look)

    (during,), (after,) = seen, store.effects("r")
    assert (during.key, during.status, during.ended, during.target) == ("call-1", "began", None, "card 7")
    assert (after.key, after.status, after.result) == ("call-1", "returned", "done")
    assert after.idempotency_key == during.idempotency_key != ""


def test_calls_without_a_key_are_numbered_in_their_order(store, outside):
    def work(run):
        return [run.once(outside.pay, "ada")["number"] for _ in range(3)]

    assert resumed(store, work) == [[1, 2, 3], [1, 2, 3]]
    assert len(outside.calls) == 3


def test_an_interrupted_loop_goes_on_where_it_was(store, outside):
    def pay(name):
        outside.calls.append(name)

    with pytest.raises(Cut), store.run("r", "w") as run:
        run.once(pay, "ada")
        run.once(pay, "bob")
        raise Cut
    with store.run("r") as run:
        for name in ("ada", "bob", "cyd"):
            run.once(pay, name)

    assert outside.calls == ["ada", "bob", "cyd"]
    assert store.look("r").status == "ready"


def test_a_call_after_the_next_checkpoint_is_another(store, outside):
    with store.run("r", "w") as run:
        run.once(outside.pay, "ada")
        run.save({"n": 1})
        run.once(outside.pay, "ada")

    assert len(outside.calls) == 2


def test_a_key_holds_for_the_whole_run(store, outside):
    with store.run("r", "w") as run:
        first = run.using(key="call-1").once(outside.pay, "ada")
        run.save({"n": 1})
        again = run.using(key="call-1").once(outside.pay, "ada")

    assert first == again
    assert outside.calls == [("ada", 1)]


def test_a_key_is_one_runs_own(store, outside):
    for run_id in ("r", "s"):
        with store.run(run_id, "w") as run:
            run.using(key="call-1").once(outside.pay, run_id)

    assert outside.calls == [("r", 1), ("s", 1)]


def test_other_arguments_under_a_key_are_refused_and_both_are_shown(store, outside):
    with store.run("r", "w") as run:
        run.using(key="call-1").once(outside.pay, "ada", amount=420)
        with pytest.raises(keepstep.ArgumentsChanged) as caught:
            run.using(key="call-1").once(outside.pay, "ada", amount=4200)

    assert outside.calls == [("ada", 420)]
    assert caught.value.key == "call-1"
    assert "amount=420)" in caught.value.before
    assert "amount=4200)" in caught.value.now


def test_a_resumed_call_without_a_key_that_comes_with_other_arguments_is_refused(store, outside):
    with store.run("r", "w") as run:
        run.once(outside.pay, "ada")

    with pytest.raises(keepstep.ArgumentsChanged), store.run("r") as run:
        run.once(outside.pay, "bob")

    assert outside.calls == [("ada", 1)]


def test_the_order_of_named_arguments_is_of_no_importance(store, outside):
    with store.run("r", "w") as run:
        run.using(key="k").once(outside.pay, name="ada", amount=2)
        run.using(key="k").once(outside.pay, amount=2, name="ada")

    assert outside.calls == [("ada", 2)]


def test_what_certainly_did_not_happen_starts_again_as_another_attempt(store, outside):
    attempts = []

    def pay():
        attempts.append((keepstep.effect().attempt, keepstep.effect().idempotency_key))
        if len(attempts) == 1:
            raise keepstep.NotDone("no money")
        return "paid"

    with pytest.raises(keepstep.NotDone), store.run("r", "w") as run:
        run.using(key="k").once(pay)
    assert store.effects("r")[0].status == "raised"
    with store.run("r") as run:
        assert run.using(key="k").once(pay) == "paid"

    assert [attempt for attempt, _ in attempts] == [1, 2]
    assert attempts[0][1] != attempts[1][1]


def test_a_call_without_a_key_that_was_tried_again_is_found_by_whoever_resumes(store, outside):
    pay = declined(outside, times=2)

    def persistent(run):
        while True:
            with suppress(keepstep.NotDone):
                return run.once(pay, "ada")

    assert resumed(store, persistent) == [3, 3]
    assert outside.calls == ["ada"] * 3
    assert [(one.status, one.attempt) for one in store.effects("r")] == [("returned", 3)]


def test_a_loop_that_passes_over_what_did_not_happen_keeps_its_order(store, outside):
    def pay(name):
        outside.calls.append(name)
        if name == "bob":
            raise keepstep.NotDone
        return name

    def work(run):
        paid = []
        for name in ("ada", "bob", "cyd"):
            with suppress(keepstep.NotDone):
                paid.append(run.once(pay, name))
        return paid

    assert resumed(store, work) == [["ada", "cyd"], ["ada", "cyd"]]
    assert outside.calls == ["ada", "bob", "cyd", "bob"]


@dataclass
class Invoice:
    number: str
    total: int


@pytest.mark.parametrize(
    "result",
    [
        None,
        (1, (2, 3)),
        {1: {"two"}},
        b"\x00" * 300_000,
        "words " * 100_000,
        list(range(50_000)),
        float("inf"),
        2**200,
    ],
    ids=["none", "tuple", "set", "bytes", "text", "list", "float", "int"],
)
def test_a_result_of_any_kind_and_size_comes_back_as_it_was(store, result):
    def tool():
        return result

    (memo, once), (memo_again, once_again) = resumed(store, lambda run: (run.memo(tool), run.once(tool)))

    assert memo == once == memo_again == once_again == result
    assert type(memo_again) is type(once_again) is type(result)


def test_a_registered_class_is_a_result_and_an_argument(place):
    registry = keepstep.Registry()
    registry.register(Invoice)
    store = place.open(registry=registry)
    calls = []

    def bill(invoice):
        calls.append(invoice)
        return Invoice(invoice.number, invoice.total * 2)

    given = resumed(store, lambda run: run.once(bill, Invoice("7", 10)))

    assert given == [Invoice("7", 20)] * 2
    assert len(calls) == 1


def test_a_result_that_cannot_be_stored_happened_all_the_same(store, outside):
    def unstorable():
        outside.calls.append("called")
        return object()

    for _ in range(3):
        with pytest.raises(keepstep.CannotStore), store.run("r", "w") as run:
            run.using(key="k").once(unstorable)

    assert outside.calls == ["called"]
    assert store.effects("r")[0].status == "returned"


def test_a_result_that_is_too_large_happened_all_the_same(place, outside):
    store = place.open(limits=keepstep.Limits(body_bytes=100_000))

    def large():
        outside.calls.append("called")
        return "x" * 200_000

    with pytest.raises(keepstep.TooLarge), store.run("r", "w") as run:
        run.once(large)
    with pytest.raises(keepstep.CannotStore, match="happened"), store.run("r") as run:
        run.once(large)

    assert outside.calls == ["called"]


def test_a_result_that_cannot_be_stored_is_not_called_again_by_a_loop(store, outside):
    def unstorable():
        outside.calls.append("called")
        return object()

    with store.run("r", "w") as run:
        for _ in range(3):
            with pytest.raises(keepstep.CannotStore):
                run.once(unstorable)

    assert outside.calls == ["called"]


# --- refused before anything is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["memo", "once"])
@pytest.mark.parametrize(
    ("given", "error"),
    [
        (((), {}), TypeError),
        ((("ada", 1, 2), {}), TypeError),
        ((("ada",), {"sum": 1}), TypeError),
        (((object(),), {}), keepstep.CannotStore),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(store, outside, verb, given, error):
    args, kwargs = given
    with store.run("r", "w") as run:
        before = store.look("r").digest
        with pytest.raises(error):
            getattr(run, verb)(outside.pay, *args, **kwargs)
        assert store.look("r").digest == before

    assert outside.calls == []


@pytest.mark.parametrize("verb", ["memo", "once"])
def test_what_cannot_be_called_is_refused(store, verb):
    with store.run("r", "w") as run, pytest.raises(keepstep.BadInput, match="function"):
        getattr(run, verb)("pay")

    assert store.effects("r") == []


@pytest.mark.parametrize(
    "options",
    [
        {"key": ""},
        {"key": 5},
        {"key": "half a pair: \ud800"},
        {"key": lambda name: name},
        {"target": ""},
        {"target": 5},
        {"idempotent": "yes"},
        {"reconcile": "ask"},
        {"not_done": ValueError},
        {"not_done": ["ValueError"]},
        {"not_done": 5},
        {"unsure": "perhaps"},
        {"min_lease": "30s"},
    ],
    ids=str,
)
def test_what_makes_no_sense_about_a_call_is_refused(store, outside, options):
    with store.run("r", "w") as run:
        before = store.look("r").digest
        with pytest.raises(keepstep.BadInput, match=next(iter(options))):
            run.using(**options).once(outside.pay, "ada")
        assert store.look("r").digest == before

    assert outside.calls == []


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": 5},
        {"target": 5},
        {"idempotent": 1},
        {"reconcile": "ask"},
        {"not_done": ValueError},
        {"not_done": ["ValueError"]},
        {"unsure": "perhaps"},
        {"min_lease": "30s"},
    ],
    ids=str,
)
def test_what_makes_no_sense_about_a_tool_is_refused_where_it_is_said(options):
    with pytest.raises(keepstep.BadInput, match=next(iter(options))):
        keepstep.tool(**options)


def test_a_run_that_was_left_calls_nothing(store, outside):
    with store.run("r", "w") as run:
        using = run.using(key="k")

    for verb in (run.once, run.memo, using.once, using.memo):
        with pytest.raises(keepstep.WrongUse, match="'r'"):
            verb(outside.pay, "ada")
    assert outside.calls == []


# --- what is said at the tool ----------------------------------------------------------------------------------------


def test_a_tool_stays_the_function_that_it_is(store, outside):
    @keepstep.tool
    def plain(name):
        return name

    @keepstep.tool(name="billing.pay", target="the bank")
    def pay(name):
        return outside.pay(name)

    assert plain("ada") == "ada"
    assert pay("ada")["number"] == 1
    with store.run("r", "w") as run:
        run.once(pay, "ada")
        run.once(plain, "ada")
    assert [(one.tool.rpartition(".")[2], one.target) for one in store.effects("r")] == [
        ("pay", "the bank"),
        ("plain", None),
    ]
    assert store.effects("r")[0].tool == "billing.pay"


def test_a_tool_names_its_effects(store, outside):
    @keepstep.tool(name="bill", key=lambda number, **_: number)
    def bill(number, *, amount):
        return outside.pay(number, amount)

    with store.run("r", "w") as run:
        run.once(bill, 7, amount=1)
        run.save({"n": 1})
        run.once(bill, 7, amount=1)
        run.once(bill, 8, amount=1)
        with pytest.raises(keepstep.ArgumentsChanged):
            run.once(bill, 7, amount=2)

    assert outside.calls == [(7, 1), (8, 1)]
    assert [one.key for one in store.effects("r")] == ["bill:7", "bill:8"]


@pytest.mark.parametrize("key", [None, 1.5, ["7"], "half a pair: \ud800"])
def test_a_tool_that_names_nothing_useful_is_refused(store, outside, key):
    @keepstep.tool(key=lambda name: key)
    def pay(name):
        return outside.pay(name)

    with store.run("r", "w") as run, pytest.raises(keepstep.BadInput, match="key="):
        run.once(pay, "ada")

    assert outside.calls == []


def test_a_key_of_the_call_is_stronger_than_the_tools(store, outside):
    @keepstep.tool(key=lambda name: name)
    def pay(name):
        return outside.pay(name)

    with store.run("r", "w") as run:
        run.using(key="one").once(pay, "ada")
        run.using(key="two").once(pay, "ada")

    assert [one.key for one in store.effects("r")] == ["one", "two"]


def test_a_partial_has_the_policy_of_its_function(store, outside):
    @keepstep.tool(name="bill", key=lambda number, amount: number)
    def bill(number, amount):
        return outside.pay(number, amount)

    with store.run("r", "w") as run:
        run.once(functools.partial(bill, 7), 1)
        run.once(functools.partial(bill, amount=1), 8)

    assert [one.key for one in store.effects("r")] == ["bill:7", "bill:8"]
    assert [one.arguments for one in store.effects("r")] == [[[7, 1], {}], [[8], {"amount": 1}]]


def test_what_a_partial_holds_is_as_much_of_the_call_as_what_comes_with_it(store, outside):
    with store.run("r", "w") as run:
        run.using(key="k").once(functools.partial(outside.pay, "ada"), amount=1)
        run.using(key="k").once(outside.pay, "ada", amount=1)
        with pytest.raises(keepstep.ArgumentsChanged):
            run.using(key="k").once(functools.partial(outside.pay, "bob"), amount=1)
        run.memo(functools.partial(outside.pay, "ada"))
        run.memo(functools.partial(outside.pay, "bob"))

    assert [who for who, _ in outside.calls] == ["ada", "ada", "bob"]


@pytest.fixture
def bill(outside):
    """A tool that says what its calls are about, and leaves out the amount."""

    @keepstep.tool(name="bill", key=lambda number, amount: number)
    def bill(number, amount):
        return outside.pay(number, amount)

    return bill


def test_calls_that_differ_in_what_the_tool_leaves_out_are_named(store, outside, bill):
    with store.run("r", "w") as run:
        run.using(key="call-1").once(bill, 7, 40)
        run.save({"n": 1})
    with store.run("r") as run, pytest.warns(keepstep.SameThingWarning) as warned:
        run.using(key="call-2").once(bill, 7, amount=50)

    [warning] = warned
    assert "bill(7, amount=50) (call-2) is about the same thing, '7', as bill(7, 40) (call-1)" in str(warning.message)
    assert outside.calls == [(7, 40), (7, 50)]
    assert [one.key for one in store.effects("r")] == ["call-1", "call-2"]


def test_calls_about_other_things_or_the_very_same_are_not_named(store, outside, bill):
    with store.run("r", "w") as run:
        run.using(key="call-1").once(bill, 7, 40)
        run.using(key="call-2").once(bill, 8, 50)
        run.using(key="call-3").once(bill, 7, 40)
        run.using(key="call-1").once(bill, 7, 40)

    assert len(outside.calls) == 3


def test_a_call_about_the_same_thing_after_one_that_did_not_happen_is_not_named(store, outside):
    declined = [keepstep.NotDone("no")]

    @keepstep.tool(name="bill", key=lambda number, amount: number, undo=lambda done: None)
    def bill(number, amount):
        if declined:
            raise declined.pop()
        return outside.pay(number, amount)

    with store.run("r", "w") as run:
        run.save({"n": 1})
        with pytest.raises(keepstep.NotDone):
            run.using(key="call-1").once(bill, 7, 40)
        run.using(key="call-2").once(bill, 7, 50)
    store.rollback("r", 1)
    with store.run("r") as run:
        run.using(key="call-3").once(bill, 7, 60)

    assert outside.calls == [(7, 50), (7, 60)]


def test_a_fork_names_what_its_parent_did_about_the_same_thing(store, outside, bill):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="call-1").once(bill, 7, 40)
    store.fork("r", id="f")

    with store.run("f") as run, pytest.warns(keepstep.SameThingWarning, match="call-1"):
        run.using(key="call-2").once(bill, 7, 50)


def test_a_warning_that_is_an_error_stops_the_call_before_it_begins(store, outside, bill):
    with store.run("r", "w") as run:
        run.using(key="call-1").once(bill, 7, 40)
        with pytest.raises(keepstep.SameThingWarning):  # these tests take every warning for an error
            run.using(key="call-2").once(bill, 7, 50)

    assert [one.key for one in store.effects("r")] == ["call-1"]


def test_what_cannot_carry_a_policy_is_refused(outside):
    strange: list[Any] = [outside.pay, len, "pay"]
    for one in strange:
        with pytest.raises(keepstep.BadInput, match="def"):
            keepstep.tool(one)
        with pytest.raises(keepstep.BadInput, match="def"):
            keepstep.tool(idempotent=True)(one)


def test_a_method_can_be_a_tool(store):
    class Bank:
        def __init__(self):
            self.paid = []

        @keepstep.tool(name="bank.pay", not_done=[ValueError])
        def pay(self, name):
            self.paid.append(name)
            if len(self.paid) == 1:
                raise ValueError("closed")

    bank = Bank()
    with store.run("r", "w") as run:
        with pytest.raises(ValueError, match="closed"):
            run.using(key="k").once(bank.pay, "ada")
        run.using(key="k").once(bank.pay, "ada")

    assert bank.paid == ["ada", "ada"]


def test_what_is_said_of_the_call_is_stronger_than_what_is_said_at_the_tool(store, outside):
    @keepstep.tool(idempotent=True, not_done=[ValueError], unsure="raise")
    def pay():
        outside.calls.append("called")
        raise ValueError("closed")

    with pytest.raises(keepstep.EffectInDoubt), store.run("r", "w") as run:
        run.using(key="k", idempotent=False, not_done=[], unsure="raise").once(pay)

    assert outside.calls == ["called"]


# --- what a tool can ask ---------------------------------------------------------------------------------------------


def test_a_tool_sees_which_effect_it_is(place):
    store = place.open()
    seen = []

    def tool():
        effect = keepstep.effect()
        seen.append((effect.run_id, effect.key, effect.attempt, effect.epoch, effect.lease_left()))
        place.clock.turn(10)
        return effect.lease_left()

    with store.run("r", "w") as run:
        left = run.using(key="call-1").once(tool)

    assert seen == [("r", "call-1", 1, 1, 30.0)]
    assert left == 20.0


def test_each_effect_has_an_idempotency_key_of_its_own(store):
    keys = []

    with store.run("r", "w") as run:
        for _ in range(3):
            run.once(lambda: keys.append(keepstep.effect().idempotency_key))

    assert len(set(keys)) == 3
    assert [one.idempotency_key for one in store.effects("r")] == keys


def test_outside_of_an_effect_there_is_none(store):
    def tool():
        return keepstep.effect().run_id

    with store.run("r", "w") as run:
        assert run.once(tool) == "r"
        with pytest.raises(keepstep.WrongUse, match="outside"):
            keepstep.effect()
    with pytest.raises(keepstep.WrongUse, match="outside"):
        keepstep.effect()


def test_a_call_refuses_to_start_with_less_lease_than_it_needs(place, outside):
    store = place.open()
    run = store.claim("r", "w")
    heart = store._session._engine.ownership._heart
    heart.stop()
    place.clock.turn(25)
    before = store.look("r").digest

    with pytest.raises(keepstep.LeaseTooShort, match="lease"):
        run.using(min_lease=10).once(outside.pay, "ada")

    assert store.look("r").digest == before
    assert run.using(min_lease=5).once(outside.pay, "ada")["number"] == 1


# --- inside each other -----------------------------------------------------------------------------------------------


def test_an_effect_inside_another_is_found_when_the_outer_is_called_again(store, outside):
    attempts = []

    def book(run):
        paid = run.once(outside.pay, "ada")
        found = run.memo(outside.pay, "a search")
        attempts.append((paid["number"], found["number"]))
        if len(attempts) == 1:
            raise keepstep.NotDone
        return "booked"

    for _ in range(3):
        with suppress(keepstep.NotDone), store.run("r", "w") as run:
            assert run.using(key="book").once(functools.partial(book, run)) == "booked"

    assert attempts == [(1, 2), (1, 2)]
    assert outside.calls == [("ada", 1), ("a search", 1)]


@pytest.mark.parametrize("error", [keepstep.NotDone, TimeoutError])
def test_effects_inside_another_are_found_when_the_outer_starts_again_on_the_spot(store, outside, error):
    got = []

    def book(run):
        calls = [run.once(outside.pay, "ada"), run.once(outside.pay, "bob"), run.memo(outside.pay, "a search")]
        got.append([*calls, *run.gather(lambda: run.once(outside.pay, "cyd"))])
        if len(got) < 3:
            raise error
        return "booked"

    with store.run("r", "w") as run:
        while len(got) < 3:
            with suppress(keepstep.NotDone):
                assert run.using(idempotent=True).once(functools.partial(book, run)) == "booked"

    assert [one["number"] for one in got[0]] == [1, 2, 3, 4]
    assert got == [got[0]] * 3


def test_the_same_key_inside_two_effects_is_two_effects(store, outside):
    with store.run("r", "w") as run:

        def book(name):
            return run.using(key="pay").once(outside.pay, name)

        run.using(key="one").once(book, "ada")
        run.using(key="two").once(book, "bob")

    assert outside.calls == [("ada", 1), ("bob", 1)]


def test_an_inner_effect_sees_itself_and_the_outer_one_itself_again(store):
    seen = []

    with store.run("r", "w") as run:

        def inner():
            seen.append(keepstep.effect().key)

        def outer():
            run.using(key="inner").once(inner)
            seen.append(keepstep.effect().key)

        run.using(key="outer").once(outer)

    assert seen == [store.effects("r")[1].key, "outer"]


def test_another_run_that_a_tool_holds_knows_nothing_of_the_tool(store, outside):
    def work(run):
        return run.using(key="pay").once(outside.pay, "ada"), run.once(outside.pay, "bob"), run.memo(outside.pay, "cyd")

    def delegate():
        with store.run("inner", "w") as inner:
            return work(inner)

    with store.run("outer", "w") as run:
        first = run.once(delegate)
    with store.run("inner") as run:
        again = work(run)

    assert first == again
    assert len(outside.calls) == 3


def test_the_same_effect_inside_itself_is_under_way_already(store, outside):
    with store.run("r", "w") as run:
        start = threading.Event()

        def outer():
            found = []

            def other_thread():
                try:
                    run.using(key="k").once(outside.pay, "ada")
                except keepstep.EffectInFlight as error:
                    found.append(error)

            thread = threading.Thread(target=other_thread)
            thread.start()
            thread.join()
            start.set()
            return len(found)

        assert run.using(key="k").once(outer) == 1

    assert outside.calls == []


# --- the right handle ------------------------------------------------------------------------------------------------


async def fetch(name="x"):
    return name


class Fetcher:
    """Called like a function, and awaited."""

    async def __call__(self, name="x"):
        return name


@pytest.mark.parametrize(
    "function", [fetch, functools.partial(fetch, "y"), Fetcher()], ids=["plain", "partial", "object"]
)
@pytest.mark.parametrize("verb", ["memo", "once"])
def test_a_sync_handle_refuses_a_coroutine_function_before_anything_is_written(verb, function):
    with keepstep.open("memory:", clock=Clock()) as store, store.run("r", "w") as run:
        before = store.look("r").digest
        with pytest.raises(keepstep.WrongUse, match="open_async"):
            getattr(run, verb)(function)
        assert store.look("r").digest == before


@pytest.mark.parametrize("verb", ["memo", "once"])
def test_a_plain_function_that_gives_a_coroutine_has_not_happened_on_a_sync_handle(verb):
    given = [lambda: fetch("y"), lambda: "z"]

    def first_one_then_the_other():
        return given.pop(0)()

    with keepstep.open("memory:", clock=Clock()) as store, store.run("r", "w") as run:
        with pytest.raises(keepstep.WrongUse, match="gave a coroutine"):
            getattr(run, verb)(first_one_then_the_other)
        assert [one.status for one in store.effects("r")] == (["raised"] if verb == "once" else [])
        assert getattr(run, verb)(first_one_then_the_other) == "z"


@pytest.mark.parametrize(
    "function", [fetch, functools.partial(fetch, "x"), Fetcher()], ids=["plain", "partial", "object"]
)
def test_an_async_handle_awaits_a_coroutine_function(function):
    async def main():
        async with keepstep.open_async("memory:", clock=Clock()) as store:
            given = []
            for _ in range(2):
                async with store.run("r", "w") as run:
                    given.append((await run.memo(function), await run.using(key="k").once(function)))
            return given

    assert asyncio.run(main()) == [("x", "x")] * 2


def test_an_async_handle_runs_a_plain_function_beside_the_loop():
    async def main():
        async with keepstep.open_async("memory:", clock=Clock()) as store, store.run("r", "w") as run:
            threads.append(await run.once(threading.get_ident))
            threads.append(await run.memo(threading.get_ident))

    threads = []
    asyncio.run(main())

    assert len(threads) == 2
    assert threading.get_ident() not in threads


# --- reading the ledger ----------------------------------------------------------------------------------------------


def test_the_ledger_is_read_in_the_order_in_which_effects_began(store, outside):
    with store.run("r", "w") as run:
        run.using(key="one", target="card").once(outside.pay, "ada", amount=2)
        run.save({"n": 1})
        run.memo(outside.pay, "bob")

    one, two = store.effects("r")
    assert (one.key, one.tool, one.target, one.step, one.line, one.epoch) == ("one", "Outside.pay", "card", 0, 1, 1)
    assert one.arguments == [["ada"], {"amount": 2}]
    assert (two.step, two.is_memo, one.is_memo) == (1, True, False)
    assert store.verify("r").ok


def test_the_ledger_of_an_unknown_run_is_refused(store):
    with pytest.raises(keepstep.NoSuchRun):
        store.effects("r")


def test_the_ledger_of_a_run_without_effects_is_empty(store):
    store.save("r", {}, workflow="w", label="a label is in the index, too")

    assert store.effects("r") == []
