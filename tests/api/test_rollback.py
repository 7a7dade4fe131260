"""Going back: effects are undone, newest first and once, and the run goes on from an earlier step on a new line."""

# ruff: noqa: PT012 - what happens inside a block, and how it leaves, is what is tested

import asyncio
import functools
from contextlib import suppress

import pytest

import keepstep
from keepstep.engine.rollback import planning
from keepstep.testing import Clock


class ReadTimeout(Exception):
    """No answer: nobody knows."""


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


class Bank:
    """The outside world, with its tools and what undoes them."""

    def __init__(self, **said_of_undo):
        self.did = []
        self.undone = []
        """What each undo was told."""
        self.errors = []
        """What undos raise, one after the other."""
        self.keys = []

        @keepstep.tool(name="void", **said_of_undo)
        def void(done):
            self.undone.append(done)
            if self.errors:
                error = self.errors.pop(0)
                if error is not None:
                    raise error
            return f"voided {done.args[0]}"

        @keepstep.tool(name="pay", undo=void, target="the bank")
        def pay(who, amount=1):
            return self.do(who, amount)

        @keepstep.tool(name="mail")
        def mail(who):
            return self.do(who, 0)

        self.void, self.pay, self.mail = void, pay, mail

    def do(self, who, amount):
        """Something happens."""
        self.keys.append(keepstep.effect().idempotency_key)
        self.did.append((who, amount))
        return {"number": len(self.did)}

    @property
    def voided(self):
        """Whose payments were undone, in order."""
        return [one.args[0] for one in self.undone]


@pytest.fixture
def bank():
    return Bank()


pytestmark = pytest.mark.usefixtures("whole_logs")


def three_payments(store, bank, run_id="r"):
    """A payment before each of four steps; going back to the first undoes three."""
    with store.run(run_id, "w") as run:
        for number, who in enumerate(("ann", "bob", "cyd", "dan"), 1):
            run.using(key=who).once(bank.pay, who, amount=number)
            run.save({"n": number}, next=f"after {who}", label=f"paid {who}")


def one_payment(store, bank, tool=None, run_id="r"):
    """A step, and behind it an effect."""
    with store.run(run_id, "w") as run:
        run.save({"n": 1})
        run.using(key="k").once(tool or bank.pay, "ada")


def cut_off(store, bank, error=None):
    """A rollback of one payment, whose process ended inside the undo."""
    one_payment(store, bank)
    bank.errors.append(error or Cut())
    with pytest.raises(Cut if error is None else keepstep.UndoFailed):
        store.rollback("r", 1)


def status(store, run_id="r"):
    return {one.key: one.status for one in store.effects(run_id)}


def told(plan):
    return [(one.key, one.action, one.outcome) for one in plan.items]


def pages(store, run_id="r"):
    """Every checkpoint of a run, oldest first."""
    cursor, items = None, []
    while True:
        page = store.history(run_id, newest_first=False, cursor=cursor)
        items += page.items
        cursor = page.next
        if cursor is None:
            return items


# --- the plan --------------------------------------------------------------------------------------------------------


def test_a_plan_names_what_would_be_undone_newest_first_and_does_nothing(store, bank):
    three_payments(store, bank)
    before = store.look("r").digest

    plan = store.plan_rollback("r", 1)

    assert told(plan) == [("dan", "undo", None), ("cyd", "undo", None), ("bob", "undo", None)]
    assert (plan.run_id, plan.to_step, plan.to_seq) == ("r", 1, store.at("r", step=1).seq)
    assert {(one.tool, one.target, one.why) for one in plan.items} == {("pay", "the bank", None)}
    assert [one.began for one in plan.items] == [one.began for one in reversed(store.effects("r")[1:])]
    assert plan.possible
    assert store.look("r").digest == before
    assert bank.undone == []


def test_a_plan_says_what_stands_against_it(store, bank):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="k").once(bank.pay, "ada")
        run.using(key="m").once(bank.mail, "bob")

    plan = store.plan_rollback("r", 1)

    assert [(one.key, one.action) for one in plan.items] == [("m", "cannot"), ("k", "undo")]
    assert "keep" in plan.items[0].why
    assert not plan.possible
    assert store.plan_rollback("r", 1, keep=["m"]).possible


def test_a_plan_for_a_run_that_somebody_holds_can_be_made(store, bank):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="k").once(bank.pay, "ada")
        assert told(store.plan_rollback("r", 1)) == [("k", "undo", None)]


# --- undoing ---------------------------------------------------------------------------------------------------------


def test_effects_since_the_step_are_undone_newest_first(store, bank):
    three_payments(store, bank)

    report = store.rollback("r", 1)

    assert bank.voided == ["dan", "cyd", "bob"]
    assert told(report) == [("dan", "undo", "undone"), ("cyd", "undo", "undone"), ("bob", "undo", "undone")]
    assert status(store) == {"ann": "returned", "bob": "undone", "cyd": "undone", "dan": "undone"}


def test_an_undo_is_told_of_the_effect(store, bank):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="k").once(bank.pay, "ada", amount=420)

    store.rollback("r", 1)

    [done] = bank.undone
    assert (done.run_id, done.key, done.tool, done.target) == ("r", "k", "pay", "the bank")
    assert (done.args, done.kwargs, done.result) == (["ada"], {"amount": 420}, {"number": 1})
    assert done.effect_idempotency_key == bank.keys[0]
    assert done.idempotency_key
    assert done.idempotency_key != bank.keys[0]


def test_each_undo_has_an_idempotency_key_of_its_own(store, bank):
    three_payments(store, bank)

    store.rollback("r", 1)

    assert len({one.idempotency_key for one in bank.undone} | set(bank.keys)) == 3 + 4


def test_the_key_of_what_was_undone_is_free_again(store, bank):
    one_payment(store, bank)
    store.rollback("r", 1)

    with store.run("r") as run:
        again = run.using(key="k").once(bank.pay, "eve", amount=7)
        assert run.using(key="k").once(bank.pay, "eve", amount=7) == again

    assert bank.did == [("ada", 1), ("eve", 7)]
    assert len(set(bank.keys)) == 2
    assert status(store) == {"k": "returned"}


def test_what_was_undone_and_done_again_can_be_undone_again(store, bank):
    one_payment(store, bank)
    store.rollback("r", 1)
    with store.run("r") as run:
        run.using(key="k").once(bank.pay, "eve", amount=7)

    store.rollback("r", 1)

    assert bank.voided == ["ada", "eve"]
    assert bank.undone[1].kwargs == {"amount": 7}
    assert bank.undone[1].result == {"number": 2}
    assert bank.undone[1].effect_idempotency_key == bank.keys[1]
    assert bank.undone[0].idempotency_key != bank.undone[1].idempotency_key


def test_what_was_undone_is_not_undone_again(store, bank):
    one_payment(store, bank)
    store.rollback("r", 1)

    store.note("r", "something else has happened")

    assert told(store.rollback("r", 1)) == []
    assert bank.voided == ["ada"]
    assert store.look("r").line == 3


def test_a_rollback_whose_reply_was_lost_can_be_asked_for_again(store, bank):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="m").once(bank.mail, "bob")
        run.using(key="k").once(bank.pay, "ada")
    report = store.rollback("r", 1, keep=["m"])
    before = store.look("r").digest

    again = store.rollback("r", 1, keep=["m"])

    assert told(again) == told(report) == [("k", "undo", "undone"), ("m", "keep", "kept")]
    assert (again.to_seq, [one.began for one in again.items]) == (report.to_seq, [one.began for one in report.items])
    assert store.look("r").digest == before


def test_a_rollback_that_was_cut_off_before_its_run_was_free_can_be_asked_for_again(place, bank, monkeypatch):
    async def not_released(claim, reason):
        pass

    dead, store = place.open(), place.open()
    one_payment(dead, bank)
    with monkeypatch.context() as patched:
        patched.setattr("keepstep.engine.rollback.going.release", not_released)
        dead.rollback("r", 1)
    place.kill(dead)
    assert store.look("r").status == "running"

    report = store.rollback("r", 1)

    assert told(report) == [("k", "undo", "undone")]
    assert store.look("r").line == 2
    assert bank.voided == ["ada"]


def test_effects_without_a_key_of_their_own_are_undone_too(store, bank):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.once(bank.pay, "ada")
        run.once(bank.pay, "bob")

    store.rollback("r", 1)
    with store.run("r") as run:
        run.once(bank.pay, "cyd")

    assert bank.voided == ["bob", "ada"]
    assert [one[0] for one in bank.did] == ["ada", "bob", "cyd"]


def test_the_same_key_inside_two_effects_is_undone_for_each(store, bank):
    @keepstep.tool(undo=lambda done: None)
    def book(trip):
        with_run[0].using(key="seat").once(bank.pay, trip)

    with store.run("r", "w") as run:
        with_run = [run]
        run.save({"n": 1})
        run.using(key="one").once(book, "north")
        run.using(key="two").once(book, "south")

    report = store.rollback("r", 1)

    assert sorted(bank.voided) == ["north", "south"]
    assert [one.outcome for one in report.items] == ["undone"] * 4
    assert [one.status for one in store.effects("r")] == ["undone"] * 4


def test_labelled_steps_and_answers_behind_the_step_hinder_nothing(store, bank):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.save({"n": 2}, label="later")
        run.using(key="k").once(bank.pay, "ada")
        run.ask("Go on?")
    [gate] = store.look("r").gates
    store.answer(gate, True)
    store.send("r", "paid", 5, id="m-1")
    with suppress(keepstep.Pause), store.run("r") as run:
        run.save({"n": 3})
        run.receive("paid")
        run.sleep(60)

    assert told(store.rollback("r", 1)) == [("k", "undo", "undone")]


def test_effects_that_certainly_did_not_happen_are_nothing_to_undo(store, bank):
    @keepstep.tool(undo=bank.void)
    def refused(who):
        raise keepstep.NotDone

    with store.run("r", "w") as run:
        run.save({"n": 1})
        with suppress(keepstep.NotDone):
            run.using(key="k").once(refused, "ada")

    assert told(store.rollback("r", 1)) == []
    assert bank.undone == []


# --- what is kept, and what stands against it ------------------------------------------------------------------------


def test_what_is_kept_stays_as_it_is(store, bank):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="k").once(bank.pay, "ada")
        first = run.using(key="m").once(bank.mail, "bob")

    report = store.rollback("r", 1, keep=["m"])

    assert told(report) == [("m", "keep", "kept"), ("k", "undo", "undone")]
    with store.run("r") as run:
        assert run.using(key="m").once(bank.mail, "bob") == first
    assert [one[0] for one in bank.did] == ["ada", "bob"]


def test_what_could_be_undone_can_be_kept(store, bank):
    three_payments(store, bank)

    store.rollback("r", 1, keep=["cyd"])

    assert bank.voided == ["dan", "bob"]
    assert status(store)["cyd"] == "returned"


def test_an_effect_that_nothing_undoes_is_refused_before_anything_is_done(store, bank):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="m").once(bank.mail, "bob")
        run.using(key="k").once(bank.pay, "ada")
    before = store.look("r").digest

    with pytest.raises(keepstep.RollbackRefused, match="mail") as caught:
        store.rollback("r", 1)

    assert [one[:2] for one in caught.value.hinders] == [("m", "mail")]
    assert bank.undone == []
    assert store.look("r").digest == before


@pytest.mark.parametrize("verb", ["plan_rollback", "rollback"])
@pytest.mark.parametrize("keep", [["k", "other"], "k", [5], ["ann"]])
def test_keeping_what_is_not_among_the_effects_is_refused(store, bank, verb, keep):
    with store.run("r", "w") as run:
        run.using(key="ann").once(bank.pay, "ann")
        run.save({"n": 1})
        run.using(key="k").once(bank.pay, "ada")
    before = store.look("r").digest

    with pytest.raises(keepstep.BadInput, match="keep="):
        getattr(store, verb)("r", 1, keep=keep)

    assert store.look("r").digest == before


@pytest.mark.parametrize("undone", ["k", [5]])
def test_what_is_no_list_of_keys_is_refused(store, bank, undone):
    one_payment(store, bank)

    with pytest.raises(keepstep.BadInput, match="undone="):
        store.rollback("r", 1, undone=undone)


@pytest.mark.parametrize("undo", ["void", {"pay": "void"}, [len]])
def test_undos_that_are_no_functions_are_refused(store, bank, undo):
    one_payment(store, bank)

    with pytest.raises(keepstep.BadInput, match="undo="):
        store.rollback("r", 1, undo=undo)


def test_an_effect_in_doubt_is_refused_until_it_is_settled(store, bank):
    @keepstep.tool(name="slow", undo=bank.void)
    def slow(who):
        raise ReadTimeout

    with pytest.raises(keepstep.EffectInDoubt), store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="k", unsure="raise").once(slow, "ada")
    with pytest.raises(keepstep.RollbackRefused, match="settle"):
        store.rollback("r", 1)
    assert store.plan_rollback("r", 1, keep=["k"]).possible
    with pytest.raises(keepstep.RollbackRefused, match="settle"):
        store.rollback("r", 1, undone=["k"])

    store.settle("r", "k", happened=True, result="late")
    store.rollback("r", 1)

    assert [one.result for one in bank.undone] == ["late"]


def test_an_effect_that_turns_out_not_to_have_happened_is_not_undone(store, bank):
    @keepstep.tool(name="slow", undo=bank.void)
    def slow(who):
        raise ReadTimeout

    with pytest.raises(keepstep.EffectInDoubt), store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="k", unsure="raise").once(slow, "ada")

    store.settle("r", "k", happened=False)

    assert told(store.rollback("r", 1)) == []
    assert bank.undone == []


def test_an_effect_whose_process_died_is_in_doubt(place, bank):
    @keepstep.tool(name="deadly", undo=bank.void)
    def deadly(who):
        raise Cut

    store = place.open()
    with suppress(Cut), store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="k").once(deadly, "ada")

    with pytest.raises(keepstep.RollbackRefused, match="settle"):
        store.rollback("r", 1)


def test_memos_are_left_alone(store, bank):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.memo(len, "four")

    assert told(store.rollback("r", 1)) == []


def test_what_a_fork_inherited_is_left_alone(store, bank):
    three_payments(store, bank)
    store.fork("r", id="f")
    with store.run("f") as run:
        run.using(key="own").once(bank.pay, "own")

    report = store.rollback("f", 4)

    assert told(report) == [("own", "undo", "undone")]
    with store.run("f") as run:
        assert run.using(key="dan").once(bank.pay, "dan", amount=4) == {"number": 4}
    assert len(bank.did) == 5


def test_a_mark_has_to_be_kept(store, bank):
    store.save("r", {"n": 1}, workflow="w")
    store.mark("r", "elsewhere", tool="pay")

    with pytest.raises(keepstep.RollbackRefused, match="elsewhere"):
        store.rollback("r", 1)
    assert told(store.rollback("r", 1, keep=["elsewhere"])) == [("elsewhere", "keep", "kept")]


def test_the_same_call_under_another_key_is_undone_with_it(store, bank):
    @keepstep.tool(name="slow", undo=bank.void)
    def slow(who):
        bank.do(who, 1)
        if len(bank.did) == 1:
            raise ReadTimeout
        return "again"

    with store.run("r", "w") as run:
        run.save({"n": 1})
        for key in ("call-1", "call-2"):
            with suppress(keepstep.EffectInDoubt):
                run.using(key=key, unsure="raise").once(slow, "ada")
        store.settle("r", "call-1", happened=True, result="late")
        assert run.using(key="call-2", unsure="raise").once(slow, "ada") == "late"

    store.rollback("r", 1)
    with store.run("r") as run:
        assert run.using(key="call-2", unsure="raise").once(slow, "ada") == "again"

    assert bank.voided == ["ada"]


def test_the_same_call_under_another_key_stays_with_one_that_stands(store, bank):
    @keepstep.tool(name="slow", undo=bank.void)
    def slow(who):
        bank.do(who, 1)
        raise ReadTimeout

    with store.run("r", "w") as run:
        with suppress(keepstep.EffectInDoubt):
            run.using(key="call-1", unsure="raise").once(slow, "ada")
        run.save({"n": 1})
        with suppress(keepstep.EffectInDoubt):
            run.using(key="call-2", unsure="raise").once(slow, "ada")
        store.settle("r", "call-1", happened=True, result="late")
        run.using(key="call-2", unsure="raise").once(slow, "ada")

    assert told(store.rollback("r", 1)) == []
    with store.run("r") as run:
        assert run.using(key="call-2", unsure="raise").once(slow, "ada") == "late"
    assert bank.voided == []


# --- undos that are given --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mail", "pay"])
def test_an_undo_can_be_given_for_a_tool(store, bank, name):
    one_payment(store, bank, getattr(bank, name))
    called = []

    store.rollback("r", 1, undo={name: called.append})

    assert [(one.tool, one.args) for one in called] == [(name, ["ada"])]
    assert bank.undone == []


def test_an_undo_can_be_given_for_a_mark(store, bank):
    store.save("r", {"n": 1}, workflow="w")
    store.mark("r", "elsewhere", tool="pay", target="a card")
    called = []

    store.rollback("r", 1, undo={"pay": called.append})

    assert [(one.tool, one.key, one.target, one.args) for one in called] == [("pay", "elsewhere", "a card", [])]
    assert store.mark("r", "elsewhere", tool="pay") is not None


def test_an_undo_that_this_process_does_not_know_is_refused_until_it_is_given(store, bank, monkeypatch):
    one_payment(store, bank)
    monkeypatch.setattr("keepstep.engine.undos._known", {})

    with pytest.raises(keepstep.RollbackRefused, match="void"):
        store.rollback("r", 1)
    store.rollback("r", 1, undo={"void": bank.void})

    assert bank.voided == ["ada"]


def test_the_given_undo_of_a_tool_is_stronger_than_the_one_that_it_names(store, bank):
    one_payment(store, bank)
    called = []

    store.rollback("r", 1, undo={"pay": called.append, "void": bank.void})

    assert len(called) == 1
    assert bank.undone == []


def test_a_sync_handle_refuses_a_coroutine_function_before_anything_is_done(bank):
    async def void(done):
        raise AssertionError

    with keepstep.open("memory:", clock=Clock()) as store:
        one_payment(store, bank)
        before = store.look("r").digest
        with pytest.raises(keepstep.WrongUse, match="open_async"):
            store.rollback("r", 1, undo={"pay": void})
        assert store.look("r").digest == before


def test_an_async_handle_awaits_an_undo():
    undone = []

    async def unreserve(done):
        await asyncio.sleep(0)
        undone.append((done.args, done.result))

    @keepstep.tool(undo=unreserve)
    async def reserve(what):
        return f"{what} reserved"

    async def main():
        async with keepstep.open_async("memory:", clock=Clock()) as store:
            async with store.run("r", "w") as run:
                await run.save({"n": 1})
                await run.using(key="k").once(reserve, "seat")
            report = await store.rollback("r", 1)
            return [one.outcome for one in report.items], (await store.look("r")).status

    assert asyncio.run(main()) == (["undone"], "ready")
    assert undone == [(["seat"], "seat reserved")]


# --- which runs ------------------------------------------------------------------------------------------------------


def _finish(store, run):
    run.finish("done")


def _fail(store, run):
    raise ValueError("broken")


def _pause(store, run):
    run.ask("Go on?")


def _sleep(store, run):
    run.sleep(3600)


def _receive(store, run):
    run.receive("paid")


def _cancel(store, run):
    store.cancel("r")
    run.save({"n": 3})


def _leave(store, run):
    pass


@pytest.mark.parametrize(
    ("leave", "left"),
    [
        (_leave, "ready"),
        (_pause, "paused"),
        (_sleep, "sleeping"),
        (_receive, "sleeping"),
        (_fail, "failed"),
        (_finish, "finished"),
        (_cancel, "cancelled"),
    ],
)
def test_a_run_can_go_back_however_it_was_left(store, bank, leave, left):
    with suppress(ValueError, keepstep.Pause, keepstep.Cancelled), store.run("r", "w") as run:
        run.save({"n": 1}, next="one")
        run.using(key="k").once(bank.pay, "ada")
        run.save({"n": 2}, next="two")
        leave(store, run)
    assert store.look("r").status == left

    store.rollback("r", 1)

    look = store.look("r")
    assert (look.status, look.step, look.next, look.state) == ("ready", 1, "one", {"n": 1})
    assert (look.result, look.error, look.gates, look.until, look.holder) == (None, None, (), None, None)
    assert not look.cancelling
    assert bank.voided == ["ada"]
    with store.run("r") as run:
        run.save({"n": 5})
        run.finish()


def test_a_held_run_is_refused(place, bank):
    store, other = place.open(), place.open()
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="k").once(bank.pay, "ada")
        before = store.look("r").digest
        for one in (other, store):
            with pytest.raises(keepstep.RunHeld):
                one.rollback("r", 1)
        assert store.look("r").digest == before
        run.save({"n": 2})

    assert bank.undone == []


def test_a_run_whose_owner_is_dead_can_go_back(place, bank):
    dead, store = place.open(), place.open()
    run = dead.claim("r", "w")
    run.save({"n": 1})
    run.using(key="k").once(bank.pay, "ada")
    place.kill(dead)

    store.rollback("r", 1)

    assert bank.voided == ["ada"]
    assert store.look("r").status == "ready"


def test_who_was_taken_over_by_a_rollback_writes_nothing_more(place, bank):
    frozen, store = place.open(), place.open()
    run = frozen.claim("r", "w")
    run.save({"n": 1})
    run.using(key="k").once(bank.pay, "ada")
    place.freeze(frozen)
    place.clock.turn(1)

    store.rollback("r", 1)

    with pytest.raises(keepstep.ClaimLost):
        run.save({"n": 2})
    assert store.look("r").step == 1


@pytest.mark.parametrize("verb", ["plan_rollback", "rollback"])
def test_an_unknown_run_or_step_is_refused(store, verb):
    with pytest.raises(keepstep.NoSuchRun):
        getattr(store, verb)("r", 1)
    store.save("r", {"n": 1}, step=5, workflow="w")
    store.save("r", {"n": 2}, step=7)
    before = store.look("r").digest

    for step in (0, 4, 6, 8):
        with pytest.raises(keepstep.NoSuchCheckpoint):
            getattr(store, verb)("r", step)
    for step in ("5", 5.0, True):
        with pytest.raises(keepstep.BadInput):
            getattr(store, verb)("r", step)
    assert store.look("r").digest == before


def test_a_run_without_a_checkpoint_cannot_go_back(store, bank):
    with store.run("r", "w") as run:
        run.using(key="k").once(bank.pay, "ada")

    with pytest.raises(keepstep.NoSuchCheckpoint):
        store.rollback("r", 1)


# --- the new line ----------------------------------------------------------------------------------------------------


def test_the_run_stands_at_the_step_on_a_new_line(store, bank):
    three_payments(store, bank)

    store.rollback("r", 2)

    look = store.look("r")
    assert (look.step, look.next, look.label, look.state) == (2, "after bob", "paid bob", {"n": 2})
    assert (look.line, look.status) == (2, "ready")
    assert look.saved == store.at("r", step=2).at
    loaded = store.load("r")
    assert (loaded.step, loaded.state) == (2, {"n": 2})


def test_going_back_to_the_current_step_undoes_what_came_after_it(store, bank):
    one_payment(store, bank)

    store.rollback("r", 1)

    assert bank.voided == ["ada"]
    assert (store.look("r").step, store.look("r").line) == (1, 2)


def test_the_history_shows_the_abandoned_line(store, bank):
    three_payments(store, bank)
    abandoned = store.at("r", step=3).seq
    store.rollback("r", 2)
    with store.run("r") as run:
        assert run.save({"n": "other"}) == 3

    items = pages(store)

    assert [(one.step, one.line) for one in items] == [(1, 1), (2, 1), (3, 1), (4, 1), (3, 2)]
    assert items[-1].parent_seq == items[1].seq
    assert store.at("r", step=3).state == {"n": "other"}
    assert store.at("r", seq=abandoned).state == {"n": 3}
    with pytest.raises(keepstep.NoSuchCheckpoint):
        store.at("r", step=4)
    assert store.at("r", label="paid dan").state == {"n": 4}


def text_at(number, line):
    """A state that changes everywhere now and then, so that frames of every kind are written."""
    return {
        "n": number,
        "line": line,
        "log": [f"{line}: entry {one} " + "xy" * (one % 30) for one in range(max(0, number - 40), number)],
        "blob": f"{line}-{number // 25}" * 400,
    }


def save_to(store, last, line, *, claimed=True):
    """Save on, up to a step."""
    if not claimed:
        for number in range((store.load("r").step if line > 1 else 0) + 1, last + 1):
            store.save("r", text_at(number, line), workflow="w" if number == 1 else None)
        return
    with store.run("r", "w") as run:
        for number in range((run.step or 0) + 1, last + 1):
            assert run.save(text_at(number, line)) == number


@pytest.mark.parametrize("claimed", [True, False])
def test_every_step_of_every_line_can_be_read(place, claimed):
    store = place.open()
    save_to(store, 100, 1, claimed=claimed)
    store.rollback("r", 37)
    save_to(store, 137, 2, claimed=claimed)
    store.rollback("r", 90)
    save_to(store, 120, 3, claimed=claimed)
    store.rollback("r", 20)  # back beyond the earlier ones
    save_to(store, 50, 4, claimed=claimed)
    store.rollback("r", 50)
    save_to(store, 60, 5, claimed=claimed)

    reader = place.open() if place.kind != "memory" else store
    current = {number: 1 if number <= 20 else 4 if number <= 50 else 5 for number in range(1, 61)}
    for number, line in current.items():
        assert reader.at("r", step=number).state == text_at(number, line)
    items = pages(reader)
    for one in items:
        assert reader.at("r", seq=one.seq).state == text_at(one.step, one.line)
    assert len(items) == 100 + 100 + 30 + 30 + 10
    assert [one.line for one in items] == sorted(one.line for one in items)
    with pytest.raises(keepstep.NoSuchCheckpoint):
        reader.at("r", step=61)
    assert store.verify("r").ok


def test_a_save_without_a_claim_follows_the_new_line(place):
    store = place.open()
    for number in range(1, 31):
        store.save("r", text_at(number, 1), workflow="w")

    store.rollback("r", 10)

    assert store.save("r", text_at(11, 2)) == 11
    assert store.save("r", text_at(12, 2)) == 12
    assert store.load("r").state == text_at(12, 2)
    assert store.at("r", step=10).state == text_at(10, 1)


def test_a_fork_of_a_run_that_went_back_begins_on_its_new_line(store, bank):
    three_payments(store, bank)
    store.rollback("r", 2)
    with store.run("r") as run:
        run.save({"n": "other"})

    store.fork("r", id="now")
    store.fork("r", 3, id="at 3")
    store.fork("r", 1, id="at 1")

    assert [store.look(one).state["n"] for one in ("now", "at 3", "at 1")] == ["other", "other", 1]
    with store.run("now") as run:
        run.using(key="bob").once(bank.pay, "bob", amount=2)
        run.using(key="cyd").once(bank.pay, "cyd", amount=3)
    assert [one[0] for one in bank.did] == ["ann", "bob", "cyd", "dan", "cyd"]


def test_going_back_twice_undoes_only_what_is_left(store, bank):
    three_payments(store, bank)
    store.rollback("r", 3)
    assert bank.voided == ["dan"]
    with store.run("r") as run:
        run.using(key="eve").once(bank.pay, "eve")
        run.save({"n": "four again"})

    store.rollback("r", 1)

    assert bank.voided == ["dan", "eve", "cyd", "bob"]
    look = store.look("r")
    assert (look.step, look.line, look.state) == (1, 3, {"n": 1})


def test_tags_and_notes_outlast_going_back(store):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.tag(vip=True)
        run.note("on the way")

    store.rollback("r", 1)

    look = store.look("r")
    assert (look.tags, look.note) == ({"vip": True}, "on the way")
    assert [one.run_id for one in store.runs(tags={"vip": True}).items] == ["r"]


# --- what the abandoned line waited for ------------------------------------------------------------------------------


def test_an_open_question_of_the_abandoned_line_is_gone(store):
    with suppress(keepstep.Pause), store.run("r", "w") as run:
        run.save({"n": 1})
        run.save({"n": 2})
        run.ask("Go on?")
    [gate] = store.inbox().items

    store.rollback("r", 1)

    assert store.inbox().items == []
    with pytest.raises(keepstep.KeepstepError):
        store.answer(gate.id, True)
    assert [one.run_id for one in store.due().items] == ["r"]


@pytest.mark.parametrize("key", [None, "go"])
def test_a_question_of_the_abandoned_line_is_asked_anew(store, key):
    def ask():
        with suppress(keepstep.Pause), store.run("r", "w") as run:
            if run.step is None:
                run.save({"n": 1})
            return run.ask("Go on?", key=key)

    ask()
    store.rollback("r", 1)
    ask()
    [gate] = store.inbox().items
    store.answer(gate.id, "yes")

    assert ask() == "yes"


def test_an_open_approval_of_the_abandoned_line_is_asked_anew(store, bank):
    def pay():
        with suppress(keepstep.Pause), store.run("r", "w") as run:
            if run.step is None:
                run.save({"n": 1})
            return run.using(key="k", approve="Pay?").once(bank.pay, "ada")

    pay()
    store.rollback("r", 1)
    assert store.inbox().items == []
    pay()
    [gate] = store.inbox().items
    store.answer(gate.id, {"approve": True})

    assert pay() == {"number": 1}


def test_what_was_approved_and_undone_is_approved_anew(store, bank):
    def pay():
        with suppress(keepstep.Pause), store.run("r", "w") as run:
            if run.step is None:
                run.save({"n": 1})
            return run.using(key="k", approve="Pay?").once(bank.pay, "ada")

    pay()
    store.answer(store.inbox().items[0].id, {"approve": True})
    pay()
    store.rollback("r", 1)
    assert bank.voided == ["ada"]

    assert pay() is None
    assert len(store.inbox().items) == 1


def test_a_kept_effect_without_a_key_is_found_on_the_new_line(store, bank):
    def work():
        with store.run("r", "w") as run:
            if run.step is None:
                run.save({"n": 1})
            return run.once(bank.mail, "ada"), run.once(bank.pay, "bob")

    first, _ = work()
    [mail, _] = store.effects("r")
    store.rollback("r", 1, keep=[mail.key])
    again, _ = work()

    assert again == first
    assert bank.did == [("ada", 0), ("bob", 1), ("bob", 1)]
    assert len(set(bank.keys)) == 3


def test_a_call_inside_a_kept_or_an_undone_effect_is_found_on_the_new_line(store, bank):
    @keepstep.tool(undo=lambda done: None)
    def book(run):
        return run.once(bank.mail, "ada")

    def work():
        with store.run("r", "w") as run:
            if run.step is None:
                run.save({"n": 1})
            run.once(functools.partial(book, run))

    work()
    [_, mail] = store.effects("r")
    store.rollback("r", 1, keep=[mail.key])
    work()

    assert bank.did == [("ada", 0)]


def test_a_kept_effect_without_a_key_that_comes_with_other_arguments_is_asked_about(store, bank):
    def work(who):
        with suppress(keepstep.Pause), store.run("r", "w") as run:
            if run.step is None:
                run.save({"n": 1})
            return run.once(bank.mail, who)

    work("ada")
    store.rollback("r", 1, keep=[store.effects("r")[0].key])
    work("bob")
    [gate] = store.inbox().items

    assert gate.about == "approval"
    assert "before it went back" in gate.prompt
    assert bank.did == [("ada", 0)]
    store.answer(gate.id, {"approve": True})
    assert work("bob") == work("bob") == {"number": 2}
    assert bank.did == [("ada", 0), ("bob", 0)]


def test_a_fork_of_a_run_that_went_back_finds_what_it_did_without_a_key(store, bank):
    def work(run_id):
        with store.run(run_id, "w") as run:
            if run.step is None:
                run.save({"n": 1})
            return run.once(bank.mail, "ada")

    work("r")
    store.rollback("r", 1, keep=[store.effects("r")[0].key])
    store.fork("r", id="f")
    assert work("f") == {"number": 1}
    store.rollback("f", 1)
    assert work("f") == {"number": 1}

    assert bank.did == [("ada", 0)]


def test_the_question_about_a_doubt_that_was_kept_is_asked_anew(store, bank):
    @keepstep.tool(name="slow")
    def slow(who):
        bank.do(who, 1)
        raise ReadTimeout

    def call():
        with suppress(keepstep.Pause), store.run("r", "w") as run:
            if run.step is None:
                run.save({"n": 1})
            return run.using(key="k").once(slow, "ada")

    call()
    assert len(store.inbox().items) == 1
    store.rollback("r", 1, keep=["k"])
    assert store.inbox().items == []
    call()
    [gate] = store.inbox().items
    store.answer(gate.id, {"outcome": "happened", "result": "late"})

    assert call() == "late"
    assert len(bank.did) == 1


# --- undos that do not work ------------------------------------------------------------------------------------------


def test_an_undo_that_was_certainly_not_done_stops_the_rollback_which_goes_on_later(store, bank):
    three_payments(store, bank)
    bank.errors = [None, keepstep.NotDone("not today")]

    with pytest.raises(keepstep.UndoFailed, match="cyd") as caught:
        store.rollback("r", 1)

    assert (caught.value.key, caught.value.in_doubt) == ("cyd", False)
    assert [(one.key, one.outcome) for one in caught.value.report.items] == [
        ("dan", "undone"),
        ("cyd", "failed"),
        ("bob", "skipped"),
    ]
    assert isinstance(caught.value.__cause__, keepstep.NotDone)
    assert status(store) == {"ann": "returned", "bob": "returned", "cyd": "undo_failed", "dan": "undone"}
    assert bank.voided == ["dan", "cyd"]

    assert told(store.plan_rollback("r", 1))[0] == ("dan", "undone", None)
    report = store.rollback("r", 1)

    assert told(report) == [("dan", "undone", "undone"), ("cyd", "undo", "undone"), ("bob", "undo", "undone")]
    assert bank.voided == ["dan", "cyd", "cyd", "bob"]
    assert bank.undone[2].result == bank.undone[1].result == {"number": 3}
    assert store.look("r").step == 1


def test_an_undo_says_what_its_errors_mean(place):
    class Closed(Exception):
        """The bank is closed."""

    bank, store = Bank(not_done=[Closed]), place.open()
    one_payment(store, bank)
    bank.errors = [Closed()]

    with pytest.raises(keepstep.UndoFailed) as caught:
        store.rollback("r", 1)
    assert not caught.value.in_doubt
    store.rollback("r", 1)

    assert bank.voided == ["ada", "ada"]


def test_an_undo_that_raised_is_in_doubt(store, bank):
    cut_off(store, bank, ReadTimeout("slow"))

    plan = store.plan_rollback("r", 1)
    assert (plan.items[0].action, plan.possible) == ("doubt", False)
    with pytest.raises(keepstep.RollbackRefused, match="undone="):
        store.rollback("r", 1)

    assert bank.voided == ["ada"]


@pytest.mark.parametrize("error", [None, ReadTimeout("slow")])
def test_an_undo_in_doubt_that_somebody_knows_was_done_is_not_made_again(store, bank, error):
    cut_off(store, bank, error)

    report = store.rollback("r", 1, undone=["k"])

    assert [one.outcome for one in report.items] == ["undone"]
    assert status(store) == {"k": "undone"}
    assert bank.voided == ["ada"]
    assert store.look("r").status == "ready"


@pytest.mark.parametrize("error", [None, ReadTimeout("slow")])
def test_an_undo_in_doubt_can_be_given_up(store, bank, error):
    cut_off(store, bank, error)

    report = store.rollback("r", 1, keep=["k"])

    assert told(report) == [("k", "keep", "kept")]
    assert bank.voided == ["ada"]
    with store.run("r") as run:
        run.save({"n": 2})


@pytest.mark.parametrize("error", [None, ReadTimeout("slow"), keepstep.NotDone("no")])
def test_an_effect_whose_undo_is_given_up_has_its_result_again(store, bank, error):
    cut_off(store, bank, error)
    store.rollback("r", 1, keep=["k"])

    with store.run("r") as run:
        assert run.using(key="k").once(bank.pay, "ada") == {"number": 1}

    assert bank.did == [("ada", 1)]
    assert status(store) == {"k": "returned"}


@pytest.mark.parametrize("error", [None, ReadTimeout("slow")])
def test_an_undo_in_doubt_that_somebody_knows_was_not_done_is_made_again(store, bank, error):
    cut_off(store, bank, error)
    assert not store.plan_rollback("r", 1).possible

    report = store.rollback("r", 1, not_undone=["k"])

    assert told(report) == [("k", "undo", "undone")]
    first, again = bank.undone
    assert first == again
    assert status(store) == {"k": "undone"}


def test_an_undo_was_done_or_was_not_done(store, bank):
    cut_off(store, bank)

    with pytest.raises(keepstep.BadInput, match="both name k"):
        store.rollback("r", 1, undone=["k"], not_undone=["k"])


@pytest.mark.parametrize("error", [None, ReadTimeout("slow")])
@pytest.mark.parametrize("was_done", [True, False])
def test_an_undo_that_can_be_asked_is_asked_whether_it_was_done(place, error, was_done):
    asked = []

    def find_out(doubt):
        asked.append(doubt)
        return keepstep.Happened("voided before") if was_done else keepstep.NotDone

    bank, store = Bank(reconcile=find_out), place.open()
    one_payment(store, bank)
    bank.errors = [error or Cut()]
    if error is None:
        with pytest.raises(Cut):
            store.rollback("r", 1)
        report = store.rollback("r", 1)
    elif was_done:
        report = store.rollback("r", 1)  # it is asked on the spot
    else:
        with pytest.raises(keepstep.UndoFailed, match="Call rollback again"):
            store.rollback("r", 1)
        report = store.rollback("r", 1)

    assert told(report) == [("k", "undo", "undone")]
    assert bank.voided == ["ada"] * (1 if was_done else 2)
    assert {(one.key, one.tool, one.idempotency_key) for one in asked} == {
        ("k", "void", bank.undone[0].idempotency_key)
    }
    assert asked[0].args[0] == bank.undone[0]


@pytest.mark.parametrize("error", [None, ReadTimeout("slow")])
def test_an_undo_that_was_asked_and_does_not_know_stays_in_doubt(place, error):
    bank, store = Bank(reconcile=lambda doubt: None), place.open()
    cut_off(store, bank, error)

    with pytest.raises(keepstep.UndoFailed, match="Nobody knows") as caught:
        store.rollback("r", 1)

    assert caught.value.in_doubt
    assert bank.voided == ["ada"]
    store.rollback("r", 1, undone=["k"])
    assert status(store) == {"k": "undone"}


@pytest.mark.parametrize("error", [None, ReadTimeout("slow")])
def test_an_idempotent_undo_is_made_again_with_the_same_idempotency_key(place, error):
    bank, store = Bank(idempotent=True), place.open()
    cut_off(store, bank, error)

    report = store.rollback("r", 1)

    assert told(report) == [("k", "undo", "undone")]
    first, again = bank.undone
    assert first == again


def test_an_idempotent_undo_keeps_its_idempotency_key_as_often_as_it_is_cut_off(place):
    bank, store = Bank(idempotent=True), place.open()
    cut_off(store, bank)
    for error in (ReadTimeout("slow"), Cut(), ReadTimeout("slow"), Cut()):
        bank.errors = [error]
        with pytest.raises((Cut, keepstep.UndoFailed)):
            store.rollback("r", 1)

    store.rollback("r", 1)

    assert len(bank.undone) == 6
    assert {one.idempotency_key for one in bank.undone} == {bank.undone[0].idempotency_key}
    assert all(one == bank.undone[0] for one in bank.undone)


def test_an_undo_in_doubt_whose_function_was_given_is_named_by_its_tool(store, bank):
    one_payment(store, bank, bank.mail)

    def unmail(done):
        raise ReadTimeout

    with pytest.raises(keepstep.UndoFailed):
        store.rollback("r", 1, undo={"mail": unmail})
    with pytest.raises(keepstep.RollbackRefused) as caught:
        store.rollback("r", 1, undo={"mail": unmail})

    assert "None" not in str(caught.value)


def test_what_an_undo_returned_that_cannot_be_stored_was_undone_all_the_same(store, bank):
    one_payment(store, bank)

    report = store.rollback("r", 1, undo={"pay": lambda done: object()})

    assert [one.outcome for one in report.items] == ["undone"]
    assert status(store) == {"k": "undone"}


def test_a_result_as_large_as_allowed_is_handed_to_the_undo(place):
    store, bank = place.open(limits=keepstep.Limits(body_bytes=1000)), Bank()

    @keepstep.tool(undo=bank.void)
    def large(who):
        return "x" * 980

    one_payment(store, bank, large)
    bank.errors = [ReadTimeout("y" * 5000)]

    with pytest.raises(keepstep.UndoFailed) as caught:
        store.rollback("r", 1)
    assert caught.value.in_doubt
    store.rollback("r", 1, undone=["k"])

    assert bank.undone[0].result == "x" * 980


def test_an_undo_that_somebody_has_made_by_hand_is_not_made(store, bank):
    three_payments(store, bank)

    report = store.rollback("r", 1, undone=["cyd", "dan"])

    assert [one.outcome for one in report.items] == ["undone"] * 3
    assert bank.voided == ["bob"]
    assert set(status(store).values()) == {"returned", "undone"}


def test_an_undo_in_doubt_that_somebody_knows_was_not_made_is_made_again_with_the_same_idempotency_key(store, bank):
    @keepstep.tool(idempotent=True)
    def void(done):
        bank.undone.append(done)

    cut_off(store, bank)

    store.rollback("r", 1, undo={"pay": void})

    first, again = bank.undone
    assert first == again


def test_an_undo_in_doubt_that_this_process_does_not_know_can_be_told_to_be_done(store, bank, monkeypatch):
    cut_off(store, bank)
    monkeypatch.setattr("keepstep.engine.undos._known", {})

    store.rollback("r", 1, undone=["k"])

    assert status(store) == {"k": "undone"}


def test_an_async_rollback_whose_caller_is_cancelled_in_an_undo_leaves_it_in_doubt():
    calls = []

    async def main():
        async with keepstep.open_async("memory:", clock=Clock()) as store:
            begun = asyncio.Event()

            async def void(done):
                calls.append(done.key)
                begun.set()
                await asyncio.sleep(3600)

            async with store.run("r", "w") as run:
                await run.save({"n": 1})
                await run.using(key="k").once(len, "four")
            task = asyncio.create_task(store.rollback("r", 1, undo={"len": void}))
            await begun.wait()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            with pytest.raises(keepstep.RollbackRefused):
                await store.rollback("r", 1, undo={"len": void})
            await store.rollback("r", 1, undone=["k"])
            return (await store.look("r")).status

    assert asyncio.run(main()) == "ready"
    assert calls == ["k"]


def test_a_request_to_cancel_stops_a_rollback_which_can_be_called_again(place, bank):
    store, other = place.open(), place.open()
    three_payments(store, bank)

    def void(done):
        bank.undone.append(done)
        if done.key == "cyd":
            other.cancel("r", reason="enough", by="mia")
            store._session.engine.ownership._writers["r"].stale = True  # as after a heartbeat

    with pytest.raises(keepstep.RunCancelled, match="enough") as caught:
        store.rollback("r", 1, undo={"pay": void})

    assert (caught.value.by, store.look("r").status) == ("mia", "cancelled")
    assert "called again" in caught.value.__notes__[0]
    assert status(store) == {"ann": "returned", "bob": "returned", "cyd": "undone", "dan": "undone"}
    report = store.rollback("r", 1)
    assert [one.outcome for one in report.items] == ["undone"] * 3
    assert bank.voided == ["dan", "cyd", "bob"]
    assert (store.look("r").status, store.look("r").step) == ("ready", 1)


# --- while it is cut off ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [None, ReadTimeout("slow"), keepstep.NotDone("no")])
def test_a_run_whose_rollback_was_cut_off_cannot_be_entered(store, bank, error):
    cut_off(store, bank, error)
    before = store.look("r").digest

    with pytest.raises(keepstep.RollbackUnderWay, match="rollback"), store.run("r"):
        pass
    with pytest.raises(keepstep.RollbackUnderWay):
        store.claim("r", "w")

    assert store.look("r").digest == before


def test_a_run_whose_rollback_was_cut_off_cannot_be_saved_without_a_claim(store, bank):
    cut_off(store, bank)

    with pytest.raises(keepstep.RollbackUnderWay):
        store.save("r", {"n": 9})

    assert store.load("r").state == {"n": 1}


def test_workers_pass_over_a_run_whose_rollback_was_cut_off(store, bank):
    cut_off(store, bank)
    store.save("other", {"n": 1}, workflow="w")

    taken = store.claim_due(limit=5)
    assert [one.id for one in taken] == ["other"]
    for one in taken:
        one.close()

    store.rollback("r", 1, undone=["k"])
    assert {one.run_id for one in store.due().items} == {"r", "other"}


@pytest.mark.parametrize("error", [None, keepstep.NotDone("no")])
def test_a_run_whose_rollback_was_cut_off_is_not_due(store, bank, error):
    cut_off(store, bank, error)

    assert store.due().items == []


def test_workers_pass_over_a_run_whose_process_died_in_a_rollback(place, bank):
    dead, store = place.open(), place.open()
    one_payment(dead, bank)

    class Dead(BaseException):
        """The same."""

    def die(done):
        place.kill(dead)
        raise Dead

    with pytest.raises(BaseException):  # noqa: B017 - a dead process raises whatever it likes
        dead.rollback("r", 1, undo={"pay": die})
    assert store.look("r").status == "running"

    assert store.claim_due(limit=5) == []
    with pytest.raises(keepstep.RollbackUnderWay), store.run("r"):
        pass
    with pytest.raises(keepstep.RollbackRefused):
        store.rollback("r", 1)
    store.rollback("r", 1, undone=["k"])
    assert store.look("r").status == "ready"


def test_a_rollback_that_was_cut_off_goes_on_to_where_it_was_going(store, bank):
    three_payments(store, bank)
    bank.errors = [keepstep.NotDone()]
    with pytest.raises(keepstep.UndoFailed):
        store.rollback("r", 2)

    with pytest.raises(keepstep.BadInput, match="2"):
        store.rollback("r", 1)
    with pytest.raises(keepstep.BadInput, match="2"):
        store.plan_rollback("r", 1)
    report = store.rollback("r", 2)

    assert (report.to_step, store.look("r").step) == (2, 2)
    assert bank.voided == ["dan", "dan", "cyd"]


def test_a_run_whose_rollback_was_cut_off_can_still_be_looked_at(store, bank):
    cut_off(store, bank)

    assert store.look("r").state == {"n": 1}
    assert store.load("r").step == 1
    assert status(store) == {"k": "undo_began"}
    store.tag("r", seen=True)
    store.note("r", "stuck")


def test_a_run_whose_rollback_was_cut_off_can_be_deleted(store, bank):
    cut_off(store, bank)

    assert store.delete("r")


def test_an_ended_run_does_not_become_due_by_a_rollback_that_did_nothing(place, bank):
    store = place.open()
    one_payment(store, bank)
    with store.run("r") as run:
        run.finish("done")
    bank.errors = [keepstep.NotDone()]
    with pytest.raises(keepstep.UndoFailed):
        store.rollback("r", 1)

    assert store.claim_due(limit=5) == []
    with pytest.raises(keepstep.RollbackUnderWay), store.run("r"):
        pass


# --- others at the same time -----------------------------------------------------------------------------------------


def test_an_effect_that_begins_while_the_rollback_is_planned_is_not_forgotten(place, bank, monkeypatch):
    store, other = place.open(), place.open()
    one_payment(store, bank)
    planned = planning._since
    entered = []

    async def since(*given):
        found = await planned(*given)
        if not entered:
            entered.append(True)
            await asyncio.to_thread(enter) if place.mode == "async" else enter()
        return found

    def enter():
        with other.run("r") as run:
            run.using(key="late").once(bank.pay, "late")

    monkeypatch.setattr("keepstep.engine.rollback.planning._since", since)

    report = store.rollback("r", 1)

    assert bank.voided == ["late", "ada"]
    assert told(report) == [("late", "undo", "undone"), ("k", "undo", "undone")]


def test_nobody_else_enters_while_a_rollback_undoes(place, bank):
    store, other = place.open(), place.open()
    one_payment(store, bank)
    refused = []

    def void(done):
        for enter in (lambda: other.claim("r"), lambda: other.rollback("r", 1)):
            try:
                enter()
            except keepstep.KeepstepError as error:
                refused.append(type(error).__name__)

    store.rollback("r", 1, undo={"pay": void})

    assert len(refused) == 2
    assert set(refused) <= {"RunHeld", "RollbackUnderWay", "RollbackRefused"}
