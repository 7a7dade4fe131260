"""What a fork knows of its parent's effects: it does not do again what its parent has done."""

from contextlib import suppress

import pytest

import keepstep
from keepstep.log.records import decode_head
from tests.handles import act
from tests.kinds import kinds_of


class Bank:
    """The outside world: it counts what is asked of it, and answers with these errors first."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = []
        self.keys = []

    def pay(self, name, amount=1):
        self.calls.append((name, amount))
        self.keys.append(keepstep.effect().idempotency_key)
        if self.errors:
            raise self.errors.pop(0)
        return {"paid": amount, "number": len(self.calls)}


class ReadTimeout(Exception):
    """It proves nothing."""


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


PAID = {"paid": 1, "number": 1}


pytestmark = pytest.mark.usefixtures("whole_logs")


@pytest.fixture
def bank():
    """A world in which nothing has happened yet."""
    return Bank()


def pay(run, bank, *args, key="k", **options):
    """One payment, which raises when it is in doubt."""
    return run.using(key=key, unsure="raise", **options).once(bank.pay, *(args or ("ada",)))


def paid(store, bank, *args, run_id="r", **options):
    """What a run gets that pays."""
    with store.run(run_id, "w") as run:
        if run.step is None:
            run.save({"n": 1})
        return pay(run, bank, *args, **options)


def doubted(store, bank, *args, **options):
    """A run that was left with a payment in doubt."""
    bank.errors.append(ReadTimeout("no answer"))
    with pytest.raises(keepstep.EffectInDoubt):
        paid(store, bank, *args, **options)


def status(store, run_id="fork"):
    return [(one.key, one.status) for one in store.effects(run_id)]


def asked(store, work, run_id="fork"):
    """The gate at which a run pauses that does this."""
    outcome = store.carry(work, run_id)
    assert (outcome.status, outcome.error) == ("paused", None)
    [gate] = outcome.gates
    return store.gate(gate)


# --- what returned ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effects", ["ask", "reuse"])
def test_the_same_call_gets_the_parents_result_and_is_not_made(store, bank, effects):
    paid(store, bank)
    store.fork("r", id="fork", effects=effects)

    for _ in range(2):
        assert paid(store, bank, run_id="fork") == PAID

    assert bank.calls == [("ada", 1)]
    assert kinds_of(store, "fork").count("inherited") == 1
    assert "began" not in kinds_of(store, "fork")


def test_a_call_without_a_key_is_found_in_the_fork(store, bank):
    def work(run):
        return [run.once(bank.pay, "ada") for _ in range(3)]

    with store.run("r", "w") as run:
        run.save({"n": 1})
        first = work(run)
    store.fork("r", edits={"n": 2}, id="fork")

    with store.run("fork") as run:
        assert work(run) == first
        assert run.once(bank.pay, "ada")["number"] == 4


def test_what_the_parent_did_after_the_checkpoint_is_not_done_again(store, bank):
    paid(store, bank)
    with store.run("r") as run:
        run.save({"n": 2})
        pay(run, bank, "bob", key="k-2")
    store.fork("r", at=1, id="fork")

    assert paid(store, bank, "bob", run_id="fork", key="k-2")["number"] == 2
    assert len(bank.calls) == 2


def test_what_the_parent_does_after_the_fork_is_its_own(store, bank):
    paid(store, bank)
    store.fork("r", id="fork")
    with store.run("r") as run:
        pay(run, bank, key="later")

    assert paid(store, bank, run_id="fork", key="later")["number"] == 3
    assert status(store) == [("k", "inherited"), ("later", "returned")]


def test_what_the_fork_does_is_not_seen_by_the_parent(store, bank):
    paid(store, bank)
    store.fork("r", id="fork")
    paid(store, bank, run_id="fork", key="k-2")

    assert status(store, "r") == [("k", "returned")]
    assert paid(store, bank, key="k-2")["number"] == 3


def test_the_fork_shows_what_it_inherited(store, bank):
    with store.run("r", "w") as run:
        run.save({})
        run.using(key="k", target="account 7").once(bank.pay, "ada", amount=3)
    store.fork("r", id="fork")

    (before,), (effect,) = store.effects("r"), store.effects("fork")
    assert (effect.key, effect.tool, effect.status) == ("k", "Bank.pay", "inherited")
    assert (effect.target, effect.arguments, effect.result) == ("account 7", before.arguments, before.result)
    assert effect.idempotency_key == before.idempotency_key
    assert not effect.is_memo


def test_a_settled_result_is_inherited(store, bank):
    doubted(store, bank)
    store.settle("r", "k", happened=True, result="paid after all")
    store.fork("r", id="fork")

    assert paid(store, bank, run_id="fork") == "paid after all"
    assert len(bank.calls) == 1


def test_a_result_that_was_lost_is_lost_in_the_fork_too(store):
    calls = []

    def unstorable():
        calls.append("called")
        return object()

    with suppress(keepstep.CannotStore), store.run("r", "w") as run:
        run.save({})
        run.using(key="k").once(unstorable)
    store.fork("r", id="fork")

    with pytest.raises(keepstep.CannotStore, match="happened"), store.run("fork") as run:
        run.using(key="k").once(unstorable)
    assert calls == ["called"]


def test_large_results_are_inherited_whole(store):
    large = {number: bytes([number]) * 300_000 for number in range(5)}
    with store.run("r", "w") as run:
        run.save({})
        for number in large:
            run.using(key=f"k-{number}").once(large.get, number)
    store.fork("r", id="fork")
    store.delete("r")

    with store.run("fork") as run:
        for number, value in large.items():
            assert run.using(key=f"k-{number}").once(large.get, number) == value
    assert len(store.effects("fork")) == 5


def test_a_result_as_large_as_it_may_be_is_inherited_with_its_arguments(place):
    store = place.open(limits=keepstep.Limits(body_bytes=4000))
    with store.run("r", "w") as run:
        run.save({})
        run.using(key="k").once(bytes.upper, b"a" * 3800)
    store.fork("r", id="fork")

    with store.run("fork") as run:
        assert run.using(key="k").once(bytes.upper, b"a" * 3800) == b"A" * 3800


def test_a_call_that_was_approved_with_other_arguments_is_found_by_its_own(store, bank):
    def work(run):
        return run.using(key="k", approve="Pay?").once(bank.pay, "ada", 420)

    store.save("r", {"n": 1}, workflow="w")
    store.answer(asked(store, work, "r").id, {"approve": True, "arguments": {"amount": 40}})
    with store.run("r") as run:
        work(run)
    store.fork("r", id="fork")

    assert store.carry(work, "fork").result["paid"] == 40
    assert bank.calls == [("ada", 40)]


def test_calls_inside_a_call_are_inherited(store, bank):
    def trip(run):
        def outer():
            return [pay(run, bank, name, key=f"inner {name}") for name in ("ada", "bob")]

        return run.using(key="outer").once(outer)

    with store.run("r", "w") as run:
        run.save({})
        first = trip(run)
    store.fork("r", id="fork")

    with store.run("fork") as run:
        assert trip(run) == first
    assert len(bank.calls) == 2


# --- other arguments -------------------------------------------------------------------------------------------------


def test_other_arguments_ask_and_show_both(store, bank):
    paid(store, bank)
    store.fork("r", id="fork")

    gate = asked(store, lambda run: pay(run, bank, "bob"))

    assert gate.about == "approval"
    assert "Bank.pay('ada')" in gate.prompt
    assert "Bank.pay('bob')" in gate.prompt
    assert gate.details["arguments"] == [["bob"], {}]
    assert bank.calls == [("ada", 1)]


def test_a_yes_lets_the_other_call_be_made_once(store, bank):
    paid(store, bank)
    store.fork("r", id="fork")
    store.answer(asked(store, lambda run: pay(run, bank, "bob")).id, {"approve": True})

    for _ in range(2):
        assert paid(store, bank, "bob", run_id="fork")["number"] == 2

    assert bank.calls == [("ada", 1), ("bob", 1)]
    assert status(store) == [("k", "returned")]
    assert paid(store, bank) == PAID


def test_a_no_raises_each_time(store, bank):
    paid(store, bank)
    store.fork("r", id="fork")
    store.answer(asked(store, lambda run: pay(run, bank, "bob")).id, {"approve": False}, by="eve")

    for _ in range(2):
        with pytest.raises(keepstep.Rejected) as caught:
            paid(store, bank, "bob", run_id="fork")
        assert caught.value.by == "eve"

    assert bank.calls == [("ada", 1)]
    assert paid(store, bank, run_id="fork") == PAID


def test_once_the_other_call_was_made_the_parents_one_is_refused(store, bank):
    paid(store, bank)
    store.fork("r", id="fork")
    store.answer(asked(store, lambda run: pay(run, bank, "bob")).id, {"approve": True})
    paid(store, bank, "bob", run_id="fork")

    with pytest.raises(keepstep.ArgumentsChanged):
        paid(store, bank, run_id="fork")


def test_with_reuse_other_arguments_get_the_parents_result(store, bank):
    paid(store, bank)
    store.fork("r", id="fork", effects="reuse")

    assert paid(store, bank, "bob", run_id="fork") == PAID
    assert len(bank.calls) == 1


def test_with_fresh_everything_is_done_again(store, bank):
    paid(store, bank)
    store.fork("r", id="fork", effects="fresh")
    assert store.effects("fork") == []

    assert paid(store, bank, run_id="fork")["number"] == 2
    assert bank.keys[0] != bank.keys[1]


@pytest.mark.parametrize("effects", ["", None, "FRESH", True, 5, ["ask"], {}], ids=repr)
def test_what_is_no_way_to_treat_effects_is_refused(store, bank, effects):
    paid(store, bank)

    with pytest.raises(keepstep.BadInput, match="effects="):
        store.fork("r", id="fork", effects=effects)

    assert store.load("fork") is None


def test_a_doubt_is_not_dropped_for_a_call_with_other_arguments(store, bank):
    doubted(store, bank)
    store.fork("r", id="fork")

    with store.run("fork") as run, pytest.raises(keepstep.ArgumentsChanged):
        pay(run, bank, "bob")

    assert len(bank.calls) == 1
    assert [one.status for one in store.effects("fork")] == ["inherited"]


# --- what is not inherited -------------------------------------------------------------------------------------------


def test_a_memo_is_done_afresh(store):
    calls = []
    with store.run("r", "w") as run:
        run.save({})
        run.memo(calls.append, "model")
    store.fork("r", id="fork")
    assert store.effects("fork") == []

    with store.run("fork") as run:
        run.memo(calls.append, "model")

    assert calls == ["model", "model"]


def test_what_did_not_happen_may_be_done(store, bank):
    bank.errors.append(keepstep.NotDone("no money today"))
    with pytest.raises(keepstep.NotDone):
        paid(store, bank)
    doubted(store, bank, key="k-2")
    store.settle("r", "k-2", happened=False)
    store.fork("r", id="fork")
    assert store.effects("fork") == []

    assert [paid(store, bank, run_id="fork", key=key)["number"] for key in ("k", "k-2")] == [3, 4]


def test_labels_gates_timers_and_messages_are_no_effects(store):
    def work(run):
        run.save({}, label="start")
        run.receive("go")
        run.sleep(0)
        run.ask("Go on?")

    store.save("r", {}, workflow="w", label="first")
    store.send("r", "go", id="m-1")
    store.send("r", "more")
    store.carry(work, "r")

    look = store.fork("r", id="fork")

    assert store.effects("fork") == []
    assert (look.status, look.gates) == ("ready", ())
    assert store.carry(lambda run: run.receive("more"), "fork").status == "sleeping"


# --- what nobody knows -----------------------------------------------------------------------------------------------


def test_what_is_in_doubt_in_the_parent_is_in_doubt_in_the_fork(store, bank):
    doubted(store, bank)
    store.fork("r", id="fork")

    for _ in range(2):
        with pytest.raises(keepstep.EffectInDoubt) as caught:
            paid(store, bank, run_id="fork")
        assert (caught.value.run_id, caught.value.key) == ("fork", "k")

    assert len(bank.calls) == 1


def test_what_is_under_way_in_the_parent_is_in_doubt_in_the_fork(place, bank):
    holder, other = place.open(), place.open()

    def slow(name):
        other.fork("r", id="fork")
        with pytest.raises(keepstep.EffectInDoubt), other.run("fork") as fork:
            fork.using(key="k", unsure="raise").once(slow, name)
        return bank.pay(name)

    with holder.run("r", "w") as run:
        run.save({})
        assert run.using(key="k").once(slow, "ada") == PAID

    with pytest.raises(keepstep.EffectInDoubt), other.run("fork") as fork:
        fork.using(key="k", unsure="raise").once(slow, "ada")
    other.settle("fork", "k", happened=True, result="seen in the parent")
    with other.run("fork") as fork:
        assert fork.using(key="k", unsure="raise").once(slow, "ada") == "seen in the parent"
    assert len(bank.calls) == 1


def test_what_a_dead_worker_left_in_the_parent_is_in_doubt_in_the_fork(place, bank):
    dead, heir = place.open(), place.open()
    run = dead.claim("r", "w")
    run.save({})

    def dying(name):
        bank.pay(name)
        place.kill(dead)
        raise Cut

    dying.__qualname__ = "Bank.pay"
    with pytest.raises((Cut, keepstep.KeepstepError)):
        run.using(key="k", unsure="raise").once(dying, "ada")
    heir.fork("r", id="fork")

    with pytest.raises(keepstep.EffectInDoubt):
        paid(heir, bank, run_id="fork")
    heir.settle("fork", "k", happened=False)
    assert paid(heir, bank, run_id="fork")["number"] == 2


@pytest.mark.parametrize("happened", [True, False])
def test_a_doubt_is_settled_in_the_fork_alone(store, bank, happened):
    doubted(store, bank)
    store.fork("r", id="fork")
    store.settle("fork", "k", happened=happened, result="told")

    given = paid(store, bank, run_id="fork")
    assert given == "told" if happened else given["number"] == 2
    assert status(store, "r") == [("k", "doubted")]
    with pytest.raises(keepstep.EffectInDoubt):
        paid(store, bank)
    with pytest.raises(keepstep.NotInDoubt):
        store.settle("fork", "k", happened=True)


def test_a_doubt_that_turns_out_to_be_none_leaves_the_fork_free_to_call_with_other_arguments(store, bank):
    doubted(store, bank)
    store.fork("r", id="fork")
    with pytest.raises(keepstep.ArgumentsChanged):
        paid(store, bank, "bob", run_id="fork")

    store.settle("fork", "k", happened=False)

    assert paid(store, bank, "bob", run_id="fork")["number"] == 2
    assert bank.calls == [("ada", 1), ("bob", 1)]


def test_a_doubt_that_turns_out_to_have_happened_makes_the_fork_ask_about_other_arguments(store, bank):
    doubted(store, bank)
    store.fork("r", id="fork")
    store.settle("fork", "k", happened=True, result="paid")

    gate = asked(store, lambda run: pay(run, bank, "bob"))
    store.answer(gate.id, {"approve": True})

    assert paid(store, bank, "bob", run_id="fork")["number"] == 2
    assert bank.calls == [("ada", 1), ("bob", 1)]


def test_a_doubt_that_is_settled_in_the_parent_stands_in_the_fork(store, bank):
    doubted(store, bank)
    store.fork("r", id="fork")
    store.settle("r", "k", happened=True, result="told")

    assert paid(store, bank) == "told"
    with pytest.raises(keepstep.EffectInDoubt):
        paid(store, bank, run_id="fork")


def test_a_doubt_is_asked_about_in_the_fork(store, bank):
    doubted(store, bank)
    store.fork("r", id="fork")

    def work(run):
        return run.using(key="k").once(bank.pay, "ada")

    gate = asked(store, work)
    assert (gate.run_id, gate.about) == ("fork", "doubt")
    assert gate.details["arguments"] == [["ada"], {}]
    store.answer(gate.id, {"outcome": "happened", "result": "told"})

    assert store.carry(work, "fork").result == "told"
    assert len(bank.calls) == 1


def test_a_tool_that_may_be_called_again_is_so_with_the_parents_idempotency_key(store, bank):
    doubted(store, bank)
    store.fork("r", id="fork")

    assert paid(store, bank, run_id="fork", idempotent=True)["number"] == 2
    assert bank.keys[0] == bank.keys[1]


def test_a_tool_that_can_be_asked_is_told_of_the_parents_call(store, bank):
    doubted(store, bank)
    store.fork("r", id="fork")
    doubts = []

    def reconcile(doubt):
        doubts.append(doubt)
        return keepstep.Happened("found")

    assert paid(store, bank, run_id="fork", reconcile=reconcile) == "found"
    assert (doubts[0].run_id, list(doubts[0].args)) == ("fork", ["ada"])
    assert doubts[0].idempotency_key == bank.keys[0]


@pytest.mark.parametrize(
    "effects",
    [
        "ask",
        "reuse",
    ],
)
def test_the_same_call_under_another_key_meets_an_inherited_doubt(store, bank, effects):
    doubted(store, bank)
    store.fork("r", id="fork", effects=effects)

    with pytest.raises(keepstep.EffectInDoubt) as caught:
        paid(store, bank, run_id="fork", key="k-2")

    assert caught.value.key == "k"
    assert len(bank.calls) == 1


@pytest.mark.parametrize("happened", [True, False])
def test_a_doubt_that_two_keys_share_is_one_doubt_in_the_fork(store, bank, happened):
    doubted(store, bank)
    with pytest.raises(keepstep.EffectInDoubt):
        paid(store, bank, key="k-2")
    store.fork("r", id="fork")
    assert status(store) == [("k", "inherited")]

    store.settle("fork", "k", happened=happened, result=PAID)

    assert paid(store, bank, run_id="fork")["number"] == (1 if happened else 2)
    assert len(bank.calls) == (1 if happened else 2)


def test_a_result_that_two_keys_share_is_found_by_both_in_the_fork(store, bank):
    doubted(store, bank)
    with pytest.raises(keepstep.EffectInDoubt):
        paid(store, bank, key="k-2")
    for key in ("k", "k-2"):
        store.settle("r", key, happened=True, result=PAID)
    store.fork("r", id="fork")

    assert [key for key, _ in status(store)].count("k") == 1
    assert [paid(store, bank, run_id="fork", key=key) for key in ("k", "k-2")] == [PAID, PAID]
    assert len(bank.calls) == 1


def test_with_reuse_a_doubt_is_a_doubt_for_other_arguments_too(store, bank):
    doubted(store, bank)
    store.fork("r", id="fork", effects="reuse")

    with pytest.raises(keepstep.EffectInDoubt):
        paid(store, bank, run_id="fork")
    assert len(bank.calls) == 1


# --- answers ---------------------------------------------------------------------------------------------------------


def test_an_answer_given_to_the_parent_is_not_seen_by_the_fork(store, bank):
    def work(run):
        return run.using(key="k", approve="Pay?").once(bank.pay, "ada")

    store.save("r", {}, workflow="w")
    gate = asked(store, work, "r")
    store.fork("r", id="fork")
    store.answer(gate.id, {"approve": True})

    assert asked(store, work).id != gate.id
    assert store.carry(work, "r").finished
    assert len(bank.calls) == 1


def test_a_question_is_asked_anew_in_the_fork(store):
    store.save("r", {}, workflow="w")
    gate = asked(store, lambda run: run.ask("Go on?"), "r")
    store.answer(gate.id, "yes")
    store.fork("r", id="fork")

    assert asked(store, lambda run: run.ask("Go on?")).id != gate.id
    assert store.carry(lambda run: run.ask("Go on?"), "r").result == "yes"


# --- marks -----------------------------------------------------------------------------------------------------------


def test_marks_are_inherited(store, bank):
    store.save("r", {}, workflow="w")
    store.mark("r", "k", tool="Bank.pay", target="account 7", reversible=True)
    store.fork("r", id="fork")

    assert paid(store, bank, run_id="fork") is None
    assert paid(store, bank, "bob", run_id="fork") is None
    assert bank.calls == []
    (effect,) = store.effects("fork")
    assert (effect.key, effect.tool, effect.target, effect.reversible) == ("k", "Bank.pay", "account 7", True)
    assert not effect.is_memo


# --- generations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effects", ["ask", "reuse"])
def test_children_of_children_inherit_what_their_parents_inherited(store, bank, effects):
    paid(store, bank)
    store.mark("r", "k-3", tool="Bank.pay", reversible=True)
    doubted(store, bank, "bob", key="k-2")
    store.fork("r", id="child", effects=effects)
    paid(store, bank, run_id="child", key="own")
    store.fork("child", id="fork", effects="ask")
    store.delete("r")
    store.delete("child")

    assert paid(store, bank, run_id="fork") == PAID
    assert paid(store, bank, run_id="fork", key="own")["number"] == 3
    assert paid(store, bank, run_id="fork", key="k-3") is None
    assert [one.reversible for one in store.effects("fork")] == [False, True, False, False]
    with pytest.raises(keepstep.EffectInDoubt):
        paid(store, bank, "bob", run_id="fork", key="k-2")
    assert len(bank.calls) == 3


def test_in_a_child_of_a_child_other_arguments_ask(store, bank):
    paid(store, bank)
    store.fork("r", id="child")
    store.fork("child", id="fork")

    assert asked(store, lambda run: pay(run, bank, "bob")).about == "approval"
    assert len(bank.calls) == 1


def test_what_the_fork_settled_its_child_inherits(store, bank):
    doubted(store, bank)
    store.fork("r", id="child")
    store.settle("child", "k", happened=True, result="told")
    store.fork("child", id="fork")

    assert paid(store, bank, run_id="fork") == "told"


# --- again -----------------------------------------------------------------------------------------------------------


def test_a_repeated_fork_changes_nothing(store, bank):
    paid(store, bank)
    first = store.fork("r", id="fork")
    paid(store, bank, key="k-2")

    assert store.fork("r", id="fork") == first
    assert status(store) == [("k", "inherited")]
    assert paid(store, bank, run_id="fork", key="k-2")["number"] == 3


def test_the_results_outlive_the_parent(store, bank):
    paid(store, bank)
    store.fork("r", id="fork")
    store.delete("r")
    paid(store, bank, "somebody else", run_id="r")

    assert paid(store, bank, run_id="fork") == PAID


def test_a_parent_that_was_damaged_forks_nothing(place, bank):
    store = place.open()
    paid(store, bank)
    [seq] = [
        decode_head(one.head).seq
        for one in act(store, lambda engine: engine.store.records("r"))
        if decode_head(one.head).kind == "returned"
    ]
    place.damage(store, "r", seq)

    with pytest.raises(keepstep.Damaged):
        place.open().fork("r", id="fork")

    assert store.load("fork") is None
    store.delete("r")
