"""Approvals: a call waits for a yes, which is good for its arguments alone, and once."""

import functools
import random
from contextlib import suppress
from typing import Any

import pytest

import keepstep
from keepstep.codec.envelope import unpack
from keepstep.codec.registry import Registry
from keepstep.codec.values import decode
from keepstep.log.records import decode_head
from tests.handles import act

HOUR = 3600.0
PROMPT = "Pay 420 to Ada?"


class Bank:
    """The outside world: it counts what is asked of it, and answers with these errors first."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = []

    def pay(self, name, amount=1):
        self.calls.append((name, amount))
        if self.errors:
            raise self.errors.pop(0)
        return {"paid": amount, "to": name}


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


class ReadTimeout(Exception):
    """It proves nothing."""


pytestmark = pytest.mark.usefixtures("whole_logs")


@pytest.fixture
def bank():
    """A world in which nothing has happened yet."""
    return Bank()


def paying(bank, *args, key="k", **options):
    """What a run does: one payment that has to be approved."""

    def work(run):
        return run.using(key=key, **{"approve": PROMPT, **options}).once(
            bank.pay, *(args or ("ada",)), **({} if args else {"amount": 420})
        )

    return work


def asked(store, work, run_id="r"):
    """The gate at which a run pauses that does this."""
    outcome = store.carry(work, run_id, "w")
    assert (outcome.status, outcome.error) == ("paused", None)
    [gate] = outcome.gates
    return store.gate(gate)


def answered(store, work, answer, run_id="r", by=None):
    """How the run goes on once its gate is answered."""
    store.answer(asked(store, work, run_id).id, answer, by=by)
    return store.carry(work, run_id)


def records_of(store, kind, run_id="r") -> Any:
    """The records of one kind, each with its body."""
    stored = act(store, lambda engine: engine.store.records(run_id))
    found = [(decode_head(one.head), one.body) for one in stored]
    return [
        (head, {} if body is None else decode(unpack(body), Registry())) for head, body in found if head.kind == kind
    ]


def begin_and_die(place, store, bank, **options):
    """A worker claims the run, starts the approved payment, and dies in it."""
    run = store.claim("r", "w")

    def pay(name, amount=1):
        bank.pay(name, amount)
        place.kill(store)
        raise Cut

    pay.__qualname__ = "Bank.pay"
    with pytest.raises((Cut, keepstep.KeepstepError)):
        run.using(key="k", approve=PROMPT, unsure="raise", **options).once(pay, "ada", amount=420)


# --- asking ----------------------------------------------------------------------------------------------------------


def test_a_call_that_needs_a_yes_pauses_the_run_and_is_not_made(store, bank):
    gate = asked(store, paying(bank, target="account 7"))

    assert bank.calls == []
    assert store.effects("r") == []
    assert (gate.about, gate.status, gate.prompt) == ("approval", "open", PROMPT)
    assert gate.details == {"tool": "Bank.pay", "target": "account 7", "arguments": [["ada"], {"amount": 420}]}
    assert [one.id for one in store.inbox().items] == [gate.id]
    assert store.look("r").status == "paused"


def test_after_a_yes_it_is_made_once(store, bank):
    work = paying(bank)

    outcome = answered(store, work, {"approve": True}, by="eve")

    assert (outcome.status, outcome.result) == ("finished", {"paid": 420, "to": "ada"})
    assert bank.calls == [("ada", 420)]


def test_whoever_resumes_gets_the_result_without_another_question(store, bank):
    work = paying(bank)
    store.answer(asked(store, work).id, {"approve": True})
    for _ in range(3):
        with store.run("r") as run:
            assert work(run) == {"paid": 420, "to": "ada"}

    assert bank.calls == [("ada", 420)]
    assert len(records_of(store, "asked")) == len(records_of(store, "began")) == 1


def test_the_beginning_of_the_call_names_the_answer_that_it_spends(store, bank):
    answered(store, paying(bank), {"approve": True})

    [(began, _)] = records_of(store, "began")
    [(answer, _)] = records_of(store, "answered")
    assert began.approval == answer.seq > 0


def test_a_call_that_needs_no_yes_spends_none(store, bank):
    with store.run("r", "w") as run:
        run.using(key="k").once(bank.pay, "ada")

    assert [began.approval for began, _ in records_of(store, "began")] == [0]


def test_calls_without_a_key_are_approved_one_by_one(store, bank):
    def work(run):
        return [run.using(approve=PROMPT).once(bank.pay, "ada") for _ in range(2)]

    first = asked(store, work)
    store.answer(first.id, {"approve": True})
    second = asked(store, work)
    assert second.id != first.id
    store.answer(second.id, {"approve": True})

    assert store.carry(work, "r").finished
    assert len(bank.calls) == 2


def test_a_gate_that_was_asked_before_a_crash_is_the_same_after_it(place, bank):
    first, second = place.open(), place.open()
    run = first.claim("r", "w")
    with pytest.raises(keepstep.Pause):
        paying(bank)(run)
    place.kill(first)

    gate = asked(second, paying(bank))

    assert len(records_of(second, "asked")) == 1
    assert gate.status == "open"


@pytest.mark.parametrize("end", ["kill", "freeze"])
def test_a_crash_after_the_answer_does_not_ask_again(place, bank, end):
    first, second = place.open(), place.open()
    second.answer(asked(first, paying(bank)).id, {"approve": True})
    first.claim("r")
    getattr(place, end)(first)

    outcome = second.carry(paying(bank), "r")

    assert outcome.finished
    assert bank.calls == [("ada", 420)]
    assert len(records_of(second, "asked")) == 1


def test_a_crash_in_the_call_leaves_a_doubt_and_not_a_second_call(place, bank):
    first, second, third = place.open(), place.open(), place.open()
    second.answer(asked(first, paying(bank)).id, {"approve": True})
    begin_and_die(place, second, bank)

    with pytest.raises(keepstep.EffectInDoubt), third.run("r") as run:
        paying(bank, unsure="raise")(run)

    assert bank.calls == [("ada", 420)]


def test_what_did_not_happen_in_a_crash_needs_another_yes(place, bank):
    first, second, third = place.open(), place.open(), place.open()
    before = asked(first, paying(bank))
    second.answer(before.id, {"approve": True})
    begin_and_die(place, second, bank)
    third.settle("r", "k", happened=False)

    gate = asked(third, paying(bank))

    assert gate.id != before.id
    assert bank.calls == [("ada", 420)]
    third.answer(gate.id, {"approve": True})
    assert third.carry(paying(bank), "r").finished
    assert len(bank.calls) == 2


def test_a_claim_that_was_lost_before_the_call_makes_none(place, bank):
    late, heir = place.open(), place.open()
    gate = asked(late, paying(bank))
    heir.answer(gate.id, {"approve": True})
    run = late.claim("r")
    place.freeze(late)
    assert heir.carry(paying(bank), "r").finished

    with pytest.raises((keepstep.ClaimLost, keepstep.NotAllowed)):
        run.using(key="other", approve=PROMPT).once(bank.pay, "bob")

    assert bank.calls == [("ada", 420)]


# --- no --------------------------------------------------------------------------------------------------------------


def test_after_a_no_the_call_raises_each_time_that_it_is_met(store, bank):
    gate = asked(store, paying(bank))
    store.answer(gate.id, {"approve": False, "note": "too much"}, by="eve")

    for _ in range(3):
        with pytest.raises(keepstep.Rejected, match="too much") as caught, store.run("r") as run:
            paying(bank)(run)
        assert (caught.value.run_id, caught.value.key) == ("r", "k")
        assert (caught.value.by, caught.value.note) == ("eve", "too much")

    assert bank.calls == []
    assert store.effects("r") == []


@pytest.mark.parametrize("key", ["k", None])
def test_a_no_can_be_caught_and_is_met_again_in_the_same_claim(store, bank, key):
    store.answer(asked(store, paying(bank, key=key)).id, {"approve": False})

    with store.run("r") as run:
        for _ in range(2):
            with pytest.raises(keepstep.Rejected) as caught:
                paying(bank, key=key)(run)
            assert (caught.value.by, caught.value.note) == (None, None)
        run.finish("without")

    assert store.look("r").result == "without"
    assert bank.calls == []


def test_a_no_may_be_a_value(store, bank):
    work = paying(bank, rejected="value")
    store.answer(asked(store, work).id, {"approve": False, "note": "no"}, by="eve")

    with store.run("r") as run:
        given = [work(run) for _ in range(2)]

    assert [(type(one), one.by, one.note) for one in given] == [(keepstep.Rejected, "eve", "no")] * 2
    assert bank.calls == []


def test_after_a_no_other_arguments_may_be_asked_for(store, bank):
    store.answer(asked(store, paying(bank)).id, {"approve": False})

    def work(run):
        with suppress(keepstep.Rejected):
            return paying(bank)(run)
        return run.using(key="k", approve="Pay 42?").once(bank.pay, "ada", amount=42)

    assert asked(store, work).details["arguments"] == [["ada"], {"amount": 42}]


# --- other arguments -------------------------------------------------------------------------------------------------


def test_arguments_may_be_changed_by_whoever_approves(store, bank):
    outcome = answered(store, paying(bank), {"approve": True, "arguments": {"amount": 40}, "note": "less"})

    assert outcome.result == {"paid": 40, "to": "ada"}
    assert bank.calls == [("ada", 40)]


def test_the_ledger_shows_what_was_executed_and_the_record_what_was_asked(store, bank):
    answered(store, paying(bank), {"approve": True, "arguments": {"name": "bob", "amount": 40}})

    (effect,) = store.effects("r")
    args, kwargs = effect.arguments
    assert (list(args), dict(kwargs)) == (["bob", 40], {})
    [(_, body)] = records_of(store, "began")
    assert body["arguments"] == [["bob", 40], {}]
    assert body["asked"] == [["ada"], {"amount": 420}]


def test_replay_with_the_codes_own_arguments_gives_the_result_of_the_changed_ones(store, bank):
    work = paying(bank)
    store.answer(asked(store, work).id, {"approve": True, "arguments": {"amount": 40}})

    for _ in range(3):
        with store.run("r") as run:
            assert work(run) == {"paid": 40, "to": "ada"}

    assert bank.calls == [("ada", 40)]


def test_an_argument_that_was_left_to_its_default_may_be_changed(store, bank):
    outcome = answered(store, paying(bank, "ada"), {"approve": True, "arguments": {"amount": 7}})

    assert outcome.result["paid"] == 7


@pytest.mark.parametrize("arguments", [None, {}])
def test_no_changes_are_none(store, bank, arguments):
    answered(store, paying(bank), {"approve": True, "arguments": arguments, "note": None})

    assert bank.calls == [("ada", 420)]
    assert "asked" not in records_of(store, "began")[0][1]


def test_arguments_of_a_partial_may_be_changed(store, bank):
    def work(run):
        return run.using(key="k", approve=PROMPT).once(functools.partial(bank.pay, "ada", amount=420))

    outcome = answered(store, work, {"approve": True, "arguments": {"amount": 4}})

    assert outcome.result == {"paid": 4, "to": "ada"}


def test_what_takes_anything_by_name_can_be_approved_and_not_changed(store):
    calls = []

    def work(run):
        return run.using(key="k", approve=PROMPT).once(lambda *args, **named: calls.append((args, named)), 1, x=2)

    gate = asked(store, work)
    assert "arguments" not in gate.schema["properties"]
    with pytest.raises(keepstep.InvalidAnswer):
        store.answer(gate.id, {"approve": True, "arguments": {"x": 3}})
    store.answer(gate.id, {"approve": True})
    store.carry(work, "r")

    assert calls == [((1,), {"x": 2})]


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        ({"approve": True, "arguments": {"amont": 40}}, "arguments.amont"),
        ({"approve": True, "arguments": [40]}, "arguments"),
        ({"approve": "perhaps"}, "approve"),
        ({"approve": None}, "approve"),
        ({"approve": True, "note": 5}, "note"),
        ({"approve": True, "reason": "none"}, "reason"),
        ({}, "approve"),
        ({"note": "forgot"}, "approve"),
        (True, ""),
        (None, ""),
        ("yes", ""),
    ],
    ids=repr,
)
def test_an_answer_that_does_not_fit_is_refused_field_by_field(store, bank, answer, field):
    gate = asked(store, paying(bank))

    with pytest.raises(keepstep.InvalidAnswer) as caught:
        store.answer(gate.id, answer)

    assert list(caught.value.problems) == [field]
    assert store.gate(gate.id) == gate
    assert store.look("r").status == "paused"


def test_other_arguments_are_another_question(store, bank):
    first = asked(store, paying(bank))
    store.answer(first.id, {"approve": True})

    second = asked(store, paying(bank, "ada", 421))

    assert second.id != first.id
    assert second.details["arguments"] == [["ada", 421], {}]
    assert bank.calls == []


def test_a_yes_to_one_key_is_none_to_another(store, bank):
    store.answer(asked(store, paying(bank)).id, {"approve": True})

    assert asked(store, paying(bank, key="k-2")).status == "open"
    assert bank.calls == []


def test_what_was_executed_with_changed_arguments_still_refuses_others(store, bank):
    work = paying(bank)
    store.answer(asked(store, work).id, {"approve": True, "arguments": {"amount": 40}})
    with store.run("r") as run:
        work(run)
        with pytest.raises(keepstep.ArgumentsChanged):
            run.using(key="k", approve=PROMPT).once(bank.pay, "ada", amount=40)

    assert len(bank.calls) == 1


# --- once ------------------------------------------------------------------------------------------------------------


def test_a_yes_works_once(store):
    bank = Bank(keepstep.NotDone("no money today"))
    work = paying(bank)
    first = asked(store, work)
    store.answer(first.id, {"approve": True})
    with pytest.raises(keepstep.NotDone), store.run("r") as run:
        work(run)

    second = asked(store, work)
    assert second.id != first.id
    store.answer(second.id, {"approve": True})

    assert store.carry(work, "r").finished
    assert len(bank.calls) == 2
    answers = [head.seq for head, _ in records_of(store, "answered")]
    assert [head.approval for head, _ in records_of(store, "began")] == answers


def test_in_one_claim_a_yes_works_once_too(store):
    bank = Bank(keepstep.NotDone("no money today"))
    store.answer(asked(store, paying(bank)).id, {"approve": True})

    def work(run):
        with suppress(keepstep.NotDone):
            return paying(bank)(run)
        return paying(bank)(run)

    assert asked(store, work).status == "open"
    assert bank.calls == [("ada", 420)]


def test_a_no_to_the_second_attempt_is_no(store):
    bank = Bank(keepstep.NotDone("no money today"))
    work = paying(bank)
    store.answer(asked(store, work).id, {"approve": True})
    with pytest.raises(keepstep.NotDone), store.run("r") as run:
        work(run)
    store.answer(asked(store, work).id, {"approve": False})

    with pytest.raises(keepstep.Rejected), store.run("r") as run:
        work(run)
    assert len(bank.calls) == 1


def test_a_tool_that_may_be_called_again_is_so_under_one_yes(store):
    bank = Bank(ReadTimeout("slow"))

    outcome = answered(store, paying(bank, idempotent=True), {"approve": True})

    assert outcome.finished
    assert len(bank.calls) == 2
    [(answer, _)] = records_of(store, "answered")
    assert [head.approval for head, _ in records_of(store, "began")] == [answer.seq] * 2


def test_a_doubt_after_a_yes_is_asked_about_in_a_gate_of_its_own(store):
    bank = Bank(ReadTimeout("slow"))
    work = paying(bank)
    store.answer(asked(store, work).id, {"approve": True})

    gate = asked(store, work)
    assert gate.about == "doubt"
    store.answer(gate.id, {"outcome": "happened", "result": "paid after all"})

    assert store.carry(work, "r").result == "paid after all"
    assert len(bank.calls) == 1


def test_the_first_answer_wins(place, bank):
    store, other = place.open(), place.open()
    gate = asked(store, paying(bank))
    store.answer(gate.id, {"approve": False}, by="eve")

    with pytest.raises(keepstep.AlreadyAnswered) as caught:
        other.answer(gate.id, {"approve": True}, by="bob")

    assert caught.value.by == "eve"
    with pytest.raises(keepstep.Rejected), other.run("r") as run:
        paying(bank)(run)
    assert bank.calls == []


# --- deadlines -------------------------------------------------------------------------------------------------------


def test_a_question_that_expires_into_a_yes_lets_the_call_be_made(store, clock, bank):
    work = paying(bank, expires="1h", default=True)
    gate = asked(store, work)
    assert gate.default == {"approve": True}
    clock.turn(HOUR)

    outcome = store.carry(work, "r")

    assert outcome.finished
    assert bank.calls == [("ada", 420)]
    [(expired, _)] = records_of(store, "expired")
    assert [head.approval for head, _ in records_of(store, "began")] == [expired.seq]


def test_a_question_that_expires_into_a_no_rejects_the_call(store, clock, bank):
    work = paying(bank, expires="1h", default=False)
    gate = asked(store, work)
    clock.turn(HOUR)

    for _ in range(2):
        with pytest.raises(keepstep.Rejected) as caught, store.run("r") as run:
            work(run)
        assert (caught.value.by, caught.value.note) == (None, None)
    assert store.gate(gate.id).status == "expired"
    assert bank.calls == []


def test_a_question_that_expires_into_nothing_raises(store, clock, bank):
    work = paying(bank, expires=HOUR)
    gate = asked(store, work)
    clock.turn(HOUR)

    for _ in range(2):
        with pytest.raises(keepstep.GateExpired) as caught, store.run("r") as run:
            work(run)
        assert caught.value.gate == gate.id
    with pytest.raises(keepstep.GateExpired):
        store.answer(gate.id, {"approve": True})
    assert bank.calls == []


def test_an_answer_in_time_is_stronger_than_the_default(store, clock, bank):
    work = paying(bank, expires="1h", default=False)
    gate = asked(store, work)
    clock.turn(HOUR - 1)
    store.answer(gate.id, {"approve": True})
    clock.turn(HOUR)

    assert store.carry(work, "r").finished
    assert len(bank.calls) == 1


def test_a_run_whose_question_expires_is_due(store, clock, bank):
    asked(store, paying(bank, expires="1h", default=True))
    assert store.claim_due() == []
    clock.turn(HOUR)

    [run] = store.claim_due()
    paying(bank, expires="1h", default=True)(run)
    run.close()

    assert len(bank.calls) == 1


# --- in any order ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_approvals_in_a_gather_are_never_crossed(store, bank, seed):
    chance = random.Random(seed)

    def branch(run, number):
        return run.using(key=f"k-{number}", approve=f"Pay {number}?", rejected="value").once(bank.pay, "ada", number)

    def work(run):
        calls = [lambda number=number: branch(run, number) for number in range(4)]
        return [one if isinstance(one, dict) else "no" for one in run.gather(*calls)]

    said = {}
    while not (outcome := store.carry(work, "r", "w")).finished:
        gate = store.gate(chance.choice(outcome.gates))
        number = gate.details["arguments"][0][1]
        assert gate.prompt == f"Pay {number}?"
        said[number] = chance.choice(["no", "yes", "more"])
        changed = {"amount": number + 100} if said[number] == "more" else None
        store.answer(gate.id, {"approve": said[number] != "no", "arguments": changed})

    paid = {"no": lambda number: None, "yes": lambda number: number, "more": lambda number: number + 100}
    expected = [paid[said[number]](number) for number in range(4)]
    assert [one if one == "no" else one["paid"] for one in outcome.result] == [
        "no" if one is None else one for one in expected
    ]
    assert sorted(amount for _, amount in bank.calls) == sorted(one for one in expected if one is not None)


def test_equal_calls_in_a_gather_are_approved_each_for_itself(store, bank):
    def work(run):
        calls = [lambda: run.using(approve=PROMPT, rejected="value").once(bank.pay, "ada")] * 3
        return [isinstance(one, dict) for one in run.gather(*calls)]

    gates = set()
    while not (outcome := store.carry(work, "r", "w")).finished:
        store.answer(outcome.gates[-1], {"approve": len(gates) != 1})
        gates.add(outcome.gates[-1])

    assert len(gates) == 3
    assert sorted(outcome.result) == [False, True, True]
    assert len(bank.calls) == 2


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"expires": "1h"},
        {"default": True},
        {"default": False},
        {"rejected": "value"},
        {"approve": ""},
        {"approve": 5},
        {"approve": True},
        {"approve": PROMPT, "default": "yes"},
        {"approve": PROMPT, "default": 1},
        {"approve": PROMPT, "expires": "soon"},
        {"approve": PROMPT, "expires": -1},
        {"approve": PROMPT, "rejected": "ignore"},
    ],
    ids=repr,
)
def test_an_approval_that_makes_no_sense_is_refused(store, bank, options):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.BadInput):
            run.using(key="k", **options).once(bank.pay, "ada")
        assert not run.paused

    assert bank.calls == []
    assert store.look("r").gates == ()


def test_a_memo_cannot_be_approved(store, bank):
    with store.run("r", "w") as run, pytest.raises(keepstep.BadInput):
        run.using(approve=PROMPT).memo(bank.pay, "ada")

    assert bank.calls == []


def test_inside_an_effect_nothing_can_be_approved(store, bank):
    with store.run("r", "w") as run:

        def outer():
            with pytest.raises(keepstep.WrongUse, match="inside an effect"):
                run.using(key="inner", approve=PROMPT).once(bank.pay, "ada")

        run.using(key="outer", unsure="raise").once(outer)
        assert not run.paused

    assert bank.calls == []
    assert store.inbox().items == []


def test_an_approval_of_a_deleted_run_cannot_be_answered(store, bank):
    gate = asked(store, paying(bank))
    store.delete("r")

    with pytest.raises(keepstep.RunError):
        store.answer(gate.id, {"approve": True})
    assert bank.calls == []
