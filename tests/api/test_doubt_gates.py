"""Whether an effect in doubt happened is asked in the inbox; the answer settles it."""

# ruff: noqa: PT012 - what happens inside a block, and how it leaves, is what is tested

import random
from contextlib import suppress

import pytest

import keepstep
from tests.kinds import kinds_of


class Bank:
    """Counts what is done to it, and fails so many times before it replies."""

    def __init__(self, silent=1):
        self.silent = silent
        self.calls = []

    def charge(self, name, amount=1):
        self.calls.append((name, amount, keepstep.effect().idempotency_key, keepstep.effect().attempt))
        if len(self.calls) <= self.silent:
            raise TimeoutError("no reply")
        return f"receipt {len(self.calls)}"

    @property
    def keys(self):
        return [one[2] for one in self.calls]


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def bank():
    """One that does not reply to the first call."""
    return Bank()


pytestmark = pytest.mark.usefixtures("whole_logs")


def charging(bank, **how):
    """Work that charges once."""
    return lambda run: run.using(key="call 1", **how).once(bank.charge, "ada", amount=420)


def doubt_in(store, work, run_id="r"):
    """The id of the gate at which the work pauses."""
    outcome = store.carry(work, run_id, "w")
    assert (outcome.status, outcome.error) == ("paused", None)
    [gate] = outcome.gates
    return gate


def test_a_doubt_pauses_the_run_and_asks(store, bank):
    gate = doubt_in(store, charging(bank, target="card 7"))

    look = store.gate(gate)
    assert (look.about, look.status, look.run_id, look.until) == ("doubt", "open", "r", None)
    assert "charge('ada', amount=420)" in look.prompt
    assert look.details["arguments"] == [["ada"], {"amount": 420}]
    assert look.details["target"] == "card 7"
    assert look.details["idempotency_key"] == bank.keys[0]
    assert look.details["error"]["message"] == "no reply"
    assert look.details["tool"].endswith("charge")
    assert look.schema["properties"]["outcome"]["enum"] == ["happened", "not_happened", "fail"]
    with pytest.raises(keepstep.RunWaiting):
        store.claim("r")


def test_it_happened_so_it_is_not_called_again_and_the_run_gets_the_result(store, bank):
    gate = doubt_in(store, charging(bank))

    store.answer(gate, {"outcome": "happened", "result": {"receipt": 9}}, by="ada")

    assert store.carry(charging(bank), "r").result == {"receipt": 9}
    assert len(bank.calls) == 1
    assert [one.status for one in store.effects("r")] == ["returned"]
    assert kinds_of(store).count("settled") == 1


def test_it_happened_without_a_result(store, bank):
    store.answer(doubt_in(store, charging(bank)), {"outcome": "happened"})

    with store.run("r") as run:
        assert charging(bank)(run) is None
        run.finish()
    assert len(bank.calls) == 1


def test_it_did_not_happen_so_it_is_called_again_with_another_idempotency_key(store, bank):
    store.answer(doubt_in(store, charging(bank)), {"outcome": "not_happened"})

    assert store.carry(charging(bank), "r").result == "receipt 2"
    assert len(set(bank.keys)) == 2
    assert [one[3] for one in bank.calls] == [1, 2]


def test_a_second_doubt_of_the_same_effect_is_another_question(store):
    bank = Bank(silent=2)
    first = doubt_in(store, charging(bank))
    store.answer(first, {"outcome": "not_happened"})
    second = doubt_in(store, charging(bank))

    assert first != second
    assert store.gate(second).details["idempotency_key"] == bank.keys[1]
    with pytest.raises(keepstep.AlreadyAnswered):
        store.answer(first, {"outcome": "happened"})
    store.answer(second, {"outcome": "happened", "result": "found it"})
    assert store.carry(charging(bank), "r").result == "found it"
    assert len(bank.calls) == 2


def test_fail_raises_and_goes_on_raising_until_somebody_knows(store, bank):
    store.answer(doubt_in(store, charging(bank)), {"outcome": "fail"})

    for _ in range(2):
        outcome = store.carry(charging(bank), "r")
        assert outcome.status == "failed"
        assert isinstance(outcome.error, keepstep.EffectInDoubt)
        assert outcome.error.key == "call 1"
        assert store.inbox().items == []
    store.settle("r", "call 1", happened=True, result="found it")

    assert store.carry(charging(bank), "r").result == "found it"
    assert len(bank.calls) == 1


def test_fail_can_be_caught_where_the_tool_is_called(store, bank):
    store.answer(doubt_in(store, charging(bank)), {"outcome": "fail"})

    with store.run("r") as run:
        with pytest.raises(keepstep.EffectInDoubt):
            charging(bank)(run)
        run.finish("without it")

    assert store.look("r").result == "without it"


@pytest.mark.parametrize("answer", ["happened", {}, {"outcome": "perhaps"}, {"outcome": None}, None, True,
                                    {"result": 1}, {"outcome": "happened", "more": 1}], ids=repr)  # fmt: skip
def test_an_answer_that_does_not_fit_settles_nothing(store, bank, answer):
    gate = doubt_in(store, charging(bank))

    with pytest.raises(keepstep.InvalidAnswer):
        store.answer(gate, answer)

    assert store.look("r").status == "paused"
    assert [one.status for one in store.effects("r")] == ["doubted"]


def test_with_unsure_raise_nobody_is_asked(store, bank):
    outcome = store.carry(charging(bank, unsure="raise"), "r", "w")

    assert outcome.status == "failed"
    assert isinstance(outcome.error, keepstep.EffectInDoubt)
    assert store.inbox().items == []


def test_the_error_that_made_the_doubt_can_be_swallowed_no_more_than_any_pause(store, bank):
    after = []
    with store.run("r", "w") as run:
        with suppress(BaseException):
            charging(bank)(run)
        run.memo(after.append, "never")

    assert after == []
    assert store.look("r").status == "paused"


# --- settling from outside -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("happened", [True, False])
def test_settle_closes_the_gate_and_who_answers_it_later_is_told(place, bank, happened):
    store, other = place.open(), place.open()
    gate = doubt_in(store, charging(bank))

    other.settle("r", "call 1", happened=happened, result="by settle" if happened else None, by="eve")

    assert store.inbox().items == []
    look = store.gate(gate)
    assert (look.status, look.by) == ("answered", "eve")
    with pytest.raises(keepstep.AlreadyAnswered, match="eve"):
        store.answer(gate, {"outcome": "fail"}, by="ada")
    assert store.look("r").status == "ready"
    assert store.carry(charging(bank), "r").result == ("by settle" if happened else "receipt 2")


def test_who_settles_after_an_answer_is_told(store, bank):
    gate = doubt_in(store, charging(bank))
    store.answer(gate, {"outcome": "happened", "result": 1})

    with pytest.raises(keepstep.NotInDoubt):
        store.settle("r", "call 1", happened=False)

    assert store.carry(charging(bank), "r").result == 1


# --- what a dead worker left -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["kill", "freeze"])
@pytest.mark.parametrize("outcome", ["happened", "not_happened"])
def test_a_doubt_left_by_a_dead_worker_asks_when_the_run_is_entered_again(place, end, outcome):
    worker, heir = place.open(), place.open()
    bank = Bank(silent=0)

    def die(name, amount):
        bank.charge(name, amount)
        getattr(place, end)(worker)
        raise Died

    run = worker.claim("r", "w")
    with pytest.raises((Died, keepstep.KeepstepError)):
        run.using(key="call 1").once(charge_by(die), "ada", amount=420)
    assert heir.inbox().items == []

    gate = doubt_in(heir, lambda run: run.using(key="call 1").once(charge_by(bank.charge), "ada", amount=420))
    assert heir.gate(gate).details["idempotency_key"] == bank.keys[0]
    heir.answer(gate, {"outcome": outcome, "result": "told" if outcome == "happened" else None})
    result = heir.carry(lambda run: run.using(key="call 1").once(charge_by(bank.charge), "ada", amount=420), "r").result

    assert result == {"happened": "told", "not_happened": "receipt 2"}[outcome]
    assert len(set(bank.keys)) == len(bank.calls) == {"happened": 1, "not_happened": 2}[outcome]
    assert kinds_of(heir).count("doubted") == 1


def charge_by(function):
    """The same tool, whatever it does."""

    @keepstep.tool(name="charge")
    def charge(name, amount):
        return function(name, amount)

    return charge


def test_a_worker_that_dies_between_the_doubt_and_the_pause_leaves_one_question(place, bank):
    worker, heir = place.open(), place.open()
    with pytest.raises(keepstep.Pause):
        charging(bank)(worker.claim("r", "w"))
    place.kill(worker)

    gate = doubt_in(heir, charging(bank))
    assert doubt_in(place.open(), charging(bank)) == gate
    assert kinds_of(heir).count("asked") == 1


def test_a_doubt_in_a_run_that_failed_is_asked_again(store, bank):
    with pytest.raises(ZeroDivisionError), store.run("r", "w") as run:
        with suppress(keepstep.Pause):
            charging(bank)(run)
        raise ZeroDivisionError
    assert store.inbox().items == []

    gate = doubt_in(store, charging(bank))
    assert [one.id for one in store.inbox().items] == [gate]
    store.answer(gate, {"outcome": "happened", "result": 1})

    assert store.carry(charging(bank), "r").result == 1
    assert len(bank.calls) == 1


# --- the same call under another key ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "outcome",
    ["happened", "not_happened"],
)
def test_the_same_call_under_another_key_meets_the_same_gate(store, bank, outcome):
    with store.run("r", "w") as run:  # the model sees a timeout
        with pytest.raises(keepstep.EffectInDoubt):
            charging(bank, unsure="raise")(run)
        run.save("ask the model again")

    def again(run):  # it calls again, under a new id
        return run.using(key="call 2").once(bank.charge, "ada", amount=420)

    gate = doubt_in(store, again)
    assert store.gate(gate).details["idempotency_key"] == bank.keys[0]
    store.answer(gate, {"outcome": outcome, "result": "told" if outcome == "happened" else None})

    assert store.carry(again, "r").result == ("told" if outcome == "happened" else "receipt 2")
    assert len(bank.calls) == (1 if outcome == "happened" else 2)


def test_the_same_call_under_another_key_in_a_worker_that_took_over_meets_the_same_gate(place, bank):
    worker, heir = place.open(), place.open()
    with pytest.raises(keepstep.Pause):
        charging(bank)(worker.claim("r", "w"))
    gate = heir.look("r").gates[0]
    place.kill(worker)

    assert doubt_in(heir, lambda run: run.using(key="call 2").once(bank.charge, "ada", amount=420)) == gate
    assert len(bank.calls) == 1
    assert len(heir.inbox().items) == 1


def test_a_call_with_other_arguments_does_not_meet_the_doubt(place, bank):
    worker, heir = place.open(), place.open()
    with pytest.raises(keepstep.Pause):
        charging(bank)(worker.claim("r", "w"))
    place.kill(worker)

    with heir.run("r") as run:
        assert run.using(key="call 2").once(bank.charge, "bob", amount=1) == "receipt 2"


# --- an answer is about one doubt ------------------------------------------------------------------------------------


def test_an_answer_about_an_earlier_attempt_does_not_settle_a_later_one(place):
    worker, heir = place.open(), place.open()
    bank = Bank(silent=9)
    with pytest.raises(keepstep.Pause):
        charging(bank)(worker.claim("r", "w"))
    [old] = heir.look("r").gates
    place.kill(worker)
    with heir.run("r") as run, suppress(TimeoutError):  # the tool may be called again now
        charging(bank, idempotent=True)(run)
    attempts = len(bank.calls)
    assert attempts > 1

    with suppress(keepstep.GateError):
        heir.answer(old, {"outcome": "happened", "result": "the first one"})

    assert [one.status for one in heir.effects("r")] == ["doubted"]
    new = doubt_in(heir, charging(bank))
    assert new != old
    heir.answer(new, {"outcome": "happened", "result": "the last one"})
    assert heir.carry(charging(bank), "r").result == "the last one"
    assert len(bank.calls) == attempts


def test_a_late_worker_that_knows_the_outcome_closes_the_question(place):
    late, heir = place.open(), place.open()
    bank = Bank(silent=0)
    gates = []

    def frozen(name, amount):
        place.freeze(late)
        gates.append(doubt_in(heir, lambda run: run.using(key="call 1").once(charge_by(bank.charge), "ada", amount=1)))
        return bank.charge(name, amount)

    with pytest.raises(keepstep.ClaimLost), late.run("r", "w") as run:
        run.using(key="call 1").once(charge_by(frozen), "ada", amount=1)

    assert [one.status for one in heir.effects("r")] == ["returned"]
    assert heir.look("r").status == "ready"
    assert heir.inbox().items == []
    assert (
        heir.carry(lambda run: run.using(key="call 1").once(charge_by(bank.charge), "ada", amount=1), "r").result
        == "receipt 1"
    )


# --- any order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_in_any_order_of_failures_answers_and_crashes_nothing_is_charged_without_consent(place, seed):  # noqa: C901 - one story
    chance = random.Random(seed)
    stores = [place.open(), place.open()]
    calls, consents = [], {"ada": 1, "bob": 1}

    @keepstep.tool(name="charge")
    def charge(name):
        calls.append(name)
        assert calls.count(name) <= consents[name]
        if chance.random() < 0.6:
            raise TimeoutError("no reply")
        return f"{name} paid"

    def work(run):
        return [run.using(key=name).once(charge, name) for name in ("ada", "bob")]

    def enter(store):
        store.carry(work, "r", "w")

    def die(store):
        run = store.claim("r", "w")
        with suppress(keepstep.Pause, keepstep.EffectInDoubt):
            work(run)
        chance.choice([place.freeze, place.kill])(store)
        stores.remove(store)
        stores.append(place.open())

    def answer(store):
        look = chance.choice(store.inbox().items)
        name = look.details["arguments"][0][0]
        outcome = chance.choice(["happened", "not_happened", "fail"])
        if outcome == "not_happened":
            consents[name] += 1
        store.answer(look.id, {"outcome": outcome, "result": f"{name} paid"})

    def settle(store):
        name = chance.choice(["ada", "bob"])
        happened = chance.random() < 0.5
        store.settle("r", name, happened=happened, result=f"{name} paid")
        consents[name] += not happened

    for _ in range(60):
        with suppress(keepstep.NothingToDo, keepstep.NoSuchRun, keepstep.NotInDoubt, IndexError):
            chance.choice([enter, enter, answer, answer, settle, die])(chance.choice(stores))
    for _ in range(20):
        outcome = stores[0].carry(work, "r", "w")
        if outcome.finished:
            break
        for one in stores[0].effects("r"):
            with suppress(keepstep.NotInDoubt):
                stores[0].settle("r", one.key, happened=True, result=f"{one.key} paid")

    assert outcome.result == ["ada paid", "bob paid"]
    assert stores[0].inbox().items == []
