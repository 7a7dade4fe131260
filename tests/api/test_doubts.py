"""Nobody knows whether it happened: it is found out, or told, and until then nothing starts a second time."""

import socket
from contextlib import suppress

import pytest

import keepstep
from keepstep.log.records import Cancelled


class ReadTimeout(Exception):
    """Like httpx.ReadTimeout: related to none of Python's own timeouts or connection errors."""


class CardDeclined(Exception):
    """The provider says no: nothing was charged."""


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


class Bank:
    """The outside world: it counts what is asked of it, and answers with these errors first."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = []
        self.keys = []
        self.asked = []

    def pay(self, name, amount=1):
        """Pay, and then perhaps fail to say so."""
        self.calls.append((name, amount))
        effect = keepstep.effect()
        self.keys.append((effect.attempt, effect.idempotency_key))
        if self.errors:
            raise self.errors.pop(0)
        return {"paid": amount, "number": len(self.calls)}

    def answers(self, answer):
        """A way to find out, which always finds this."""

        def reconcile(doubt):
            self.asked.append(doubt)
            if isinstance(answer, Exception) and not isinstance(answer, keepstep.NotDone):
                raise answer
            return answer

        return reconcile


def call(run, bank, *args, key="k", **options):
    """One keyed payment, which raises when it stays in doubt."""
    return run.using(key=key, unsure="raise", **options).once(bank.pay, *(args or ("ada",)))


def in_doubt(store, bank, key="k", run_id="r"):
    """A run that was left with a payment in doubt."""
    bank.errors.append(ReadTimeout("no answer"))
    with pytest.raises(keepstep.EffectInDoubt), store.run(run_id, "w") as run:
        call(run, bank, key=key)


def status(store, run_id="r"):
    return [(one.key, one.status) for one in store.effects(run_id)]


# --- what an error proves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeout("slow"),
        TimeoutError(),
        ConnectionResetError(),
        OSError("disk"),
        ValueError("odd"),
        BrokenPipeError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_proves_nothing(store, error):
    bank = Bank(error)

    with pytest.raises(keepstep.EffectInDoubt) as caught, store.run("r", "w") as run:
        call(run, bank)

    assert type(caught.value.__cause__) is type(error)
    assert (caught.value.run_id, caught.value.key) == ("r", "k")
    assert caught.value.call == "Bank.pay('ada')"
    assert status(store) == [("k", "doubted")]
    assert store.effects("r")[0].error["type"].endswith(type(error).__qualname__)


@pytest.mark.parametrize(
    "error",
    [keepstep.NotDone("no"), ConnectionRefusedError(), socket.gaierror(-2, "unknown host"), CardDeclined()],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_says_so_is_proof_that_it_did_not_happen(store, error):
    bank = Bank(error)

    with pytest.raises(type(error)) as caught, store.run("r", "w") as run:
        call(run, bank, not_done=[CardDeclined])

    assert caught.value is error
    assert status(store) == [("k", "raised")]
    with store.run("r") as run:
        assert call(run, bank)["number"] == 2
    assert status(store) == [("k", "returned")]


def test_what_did_not_happen_is_tried_again_under_another_idempotency_key(store):
    bank = Bank(keepstep.NotDone())

    with store.run("r", "w") as run:
        with pytest.raises(keepstep.NotDone):
            call(run, bank)
        call(run, bank)

    (first, first_key), (second, second_key) = bank.keys
    assert (first, second) == (1, 2)
    assert first_key != second_key


def test_a_subclass_of_what_was_declared_is_proof_as_well(store):
    class Expired(CardDeclined):
        pass

    bank = Bank(Expired())
    with pytest.raises(Expired), store.run("r", "w") as run:
        call(run, bank, not_done=(CardDeclined,))

    assert status(store) == [("k", "raised")]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), Cut(), GeneratorExit()], ids=repr)
def test_a_call_that_is_cut_off_is_in_doubt(memory_store, error):
    bank = Bank(error)

    with pytest.raises(type(error)) as caught, memory_store.run("r", "w") as run:
        call(run, bank)

    assert caught.value is error
    assert status(memory_store) == [("k", "doubted")]
    assert memory_store.look("r").status == "ready"


def test_a_doubt_stands_for_whoever_resumes(store):
    bank = Bank()
    in_doubt(store, bank)

    for _ in range(2):
        with pytest.raises(keepstep.EffectInDoubt), store.run("r") as run:
            call(run, bank)

    assert bank.calls == [("ada", 1)]


# --- the same call under another id ----------------------------------------------------------------------------------


def test_a_model_that_saw_a_timeout_and_calls_again_under_a_new_id_pays_once(store):
    bank = Bank(ReadTimeout())

    with store.run("r", "w") as run:
        for call_id in ("call-1", "call-2", "call-3"):
            with pytest.raises(keepstep.EffectInDoubt) as caught:
                call(run, bank, key=call_id)
            assert caught.value.key == "call-1"

    assert bank.calls == [("ada", 1)]
    assert status(store) == [("call-1", "doubted"), ("call-2", "doubted"), ("call-3", "doubted")]


def test_a_call_that_met_a_doubt_under_another_key_is_settled_with_it(store):
    bank = Bank(ReadTimeout())
    with store.run("r", "w") as run:
        for call_id in ("call-1", "call-2"):
            with pytest.raises(keepstep.EffectInDoubt):
                call(run, bank, key=call_id)

    store.settle("r", "call-1", happened=True, result="receipt")

    with store.run("r") as run:
        assert call(run, bank, key="call-2") == "receipt"
        assert call(run, bank, key="call-1") == "receipt"
    assert bank.calls == [("ada", 1)]
    assert status(store) == [("call-1", "returned"), ("call-2", "returned")]


def test_without_a_key_the_same_call_again_meets_the_doubt_too(store):
    bank = Bank(ReadTimeout())

    with store.run("r", "w") as run:
        for _ in range(2):
            with pytest.raises(keepstep.EffectInDoubt):
                run.using(unsure="raise").once(bank.pay, "ada")
        run.save({"n": 1})
        with pytest.raises(keepstep.EffectInDoubt):
            run.using(unsure="raise").once(bank.pay, "ada")

    assert bank.calls == [("ada", 1)]


def test_another_call_is_free_beside_a_doubt(store):
    bank = Bank(ReadTimeout())

    with store.run("r", "w") as run:
        with pytest.raises(keepstep.EffectInDoubt):
            call(run, bank, key="call-1")
        assert call(run, bank, "bob", key="call-2")["number"] == 2
        assert run.using(key="call-3").once(lambda name: name, "ada") == "ada"

    assert bank.calls == [("ada", 1), ("bob", 1)]


def test_the_same_thing_by_the_tools_own_key_meets_the_doubt(store):
    calls = []

    @keepstep.tool(key=lambda invoice, **_: invoice["number"], unsure="raise")
    def bill(invoice, *, memo=""):
        calls.append(invoice["number"])
        raise ReadTimeout

    with store.run("r", "w") as run:
        with pytest.raises(keepstep.EffectInDoubt):
            run.using(key="call-1").once(bill, {"number": 7})
        with pytest.raises(keepstep.EffectInDoubt) as caught:
            run.using(key="call-2").once(bill, {"number": 7}, memo="again, please")
        with pytest.raises(keepstep.EffectInDoubt):
            run.using(key="call-3").once(bill, {"number": 8})

    assert caught.value.key == "call-1"
    assert calls == [7, 8]


def test_once_the_doubt_is_settled_the_same_call_under_another_id_starts(store):
    bank = Bank()
    in_doubt(store, bank, key="call-1")
    store.settle("r", "call-1", happened=False)

    with store.run("r") as run:
        call(run, bank, key="call-2")

    assert len(bank.calls) == 2
    assert status(store) == [("call-1", "raised"), ("call-2", "returned")]


def test_a_doubt_found_out_for_another_id_holds_for_both(store):
    bank = Bank()
    in_doubt(store, bank, key="call-1")

    for _ in range(2):
        with store.run("r") as run:
            found = bank.answers(keepstep.Happened("receipt"))
            assert call(run, bank, key="call-2", reconcile=found) == "receipt"
            assert call(run, bank, key="call-1") == "receipt"

    assert len(bank.calls) == len(bank.asked) == 1


# --- tools that may be called again ----------------------------------------------------------------------------------


def test_an_idempotent_tool_is_called_again_on_the_spot_with_the_same_key(store):
    bank = Bank(ReadTimeout(), ReadTimeout())

    with store.run("r", "w") as run:
        assert call(run, bank, idempotent=True)["number"] == 3

    assert [attempt for attempt, _ in bank.keys] == [1, 2, 3]
    assert len({key for _, key in bank.keys}) == 1
    assert [(one.status, one.attempt) for one in store.effects("r")] == [("returned", 3)]


def test_an_idempotent_tool_is_called_three_times_at_most_and_again_when_resumed(store):
    bank = Bank(*(ReadTimeout(number) for number in range(4)))

    with pytest.raises(ReadTimeout, match="2"), store.run("r", "w") as run:
        call(run, bank, idempotent=True)
    assert len(bank.calls) == 3
    assert status(store) == [("k", "doubted")]
    with store.run("r") as run:
        call(run, bank, idempotent=True)

    assert [attempt for attempt, _ in bank.keys] == [1, 2, 3, 4, 5]
    assert len({key for _, key in bank.keys}) == 1
    assert status(store) == [("k", "returned")]


def test_an_idempotent_tool_that_says_no_is_not_called_again(store):
    bank = Bank(ReadTimeout(), CardDeclined())

    with pytest.raises(CardDeclined), store.run("r", "w") as run:
        call(run, bank, idempotent=True, not_done=[CardDeclined])

    assert len(bank.calls) == 2
    assert status(store) == [("k", "raised")]


def test_an_idempotent_call_in_doubt_is_called_under_another_id_with_its_idempotency_key(store):
    bank = Bank(*(ReadTimeout() for _ in range(3)))
    with store.run("r", "w") as run:
        with pytest.raises(ReadTimeout):
            call(run, bank, key="call-1", idempotent=True)
        call(run, bank, key="call-2", idempotent=True)

    assert len(bank.calls) == 4
    assert len({key for _, key in bank.keys}) == 1


def test_an_idempotent_call_that_a_dead_worker_began_is_called_again_with_its_key(place):
    dead, heir = place.open(), place.open()
    bank = Bank()
    begin_and_die(place, dead, bank)

    with heir.run("r") as run:
        call(run, bank, idempotent=True)

    assert [attempt for attempt, _ in bank.keys] == [1, 2]
    assert len({key for _, key in bank.keys}) == 1


# --- tools that can be asked -----------------------------------------------------------------------------------------


def test_reconcile_that_finds_the_result_settles_at_once(store):
    bank = Bank(ReadTimeout())

    for _ in range(2):
        with store.run("r", "w") as run:
            assert call(run, bank, reconcile=bank.answers(keepstep.Happened({"receipt": 7}))) == {"receipt": 7}

    assert len(bank.calls) == len(bank.asked) == 1
    assert status(store) == [("k", "returned")]
    assert store.effects("r")[0].result == {"receipt": 7}


@pytest.mark.parametrize("answer", [keepstep.NotDone, keepstep.NotDone("no trace of it")], ids=["class", "instance"])
def test_reconcile_that_finds_nothing_frees_the_call_and_the_error_is_told(store, answer):
    bank = Bank(ReadTimeout("slow"))

    with pytest.raises(ReadTimeout, match="slow"), store.run("r", "w") as run:
        call(run, bank, reconcile=bank.answers(answer))
    assert status(store) == [("k", "raised")]
    with store.run("r") as run:
        assert call(run, bank)["number"] == 2

    assert [attempt for attempt, _ in bank.keys] == [1, 2]
    assert len({key for _, key in bank.keys}) == 2


def test_reconcile_that_does_not_know_leaves_the_doubt_and_is_asked_again(store):
    bank = Bank(ReadTimeout())

    for _ in range(2):
        with pytest.raises(keepstep.EffectInDoubt), store.run("r", "w") as run:
            call(run, bank, reconcile=bank.answers(None))

    assert len(bank.calls) == 1
    assert len(bank.asked) == 2
    assert status(store) == [("k", "doubted")]


@pytest.mark.parametrize("answer", [True, False, "yes", {"paid": 1}, keepstep.Happened], ids=repr)
def test_reconcile_that_returns_something_else_is_told_so_and_settles_nothing(store, answer):
    bank = Bank(ReadTimeout())

    with pytest.raises(keepstep.BadInput, match="reconcile="), store.run("r", "w") as run:
        call(run, bank, reconcile=bank.answers(answer))

    assert status(store) == [("k", "doubted")]
    with pytest.raises(keepstep.EffectInDoubt), store.run("r") as run:
        call(run, bank)
    assert len(bank.calls) == 1


def test_reconcile_that_raises_settles_nothing(store):
    bank = Bank(ReadTimeout())

    with pytest.raises(CardDeclined), store.run("r", "w") as run:
        call(run, bank, reconcile=bank.answers(CardDeclined("the answer is broken")), not_done=[CardDeclined])

    assert status(store) == [("k", "doubted")]
    with store.run("r") as run:
        assert call(run, bank, reconcile=bank.answers(keepstep.Happened("found"))) == "found"
    assert len(bank.calls) == 1


def test_reconcile_whose_result_cannot_be_stored_settles_nothing(store):
    bank = Bank(ReadTimeout())

    with pytest.raises(keepstep.CannotStore), store.run("r", "w") as run:
        call(run, bank, reconcile=bank.answers(keepstep.Happened(object())))

    assert status(store) == [("k", "doubted")]


def test_reconcile_is_told_which_effect_it_is_about(store):
    bank = Bank(ReadTimeout())
    with suppress(keepstep.EffectInDoubt), store.run("r", "w") as run:
        using = run.using(key="k", target="card 7", unsure="raise", reconcile=bank.answers(None))
        using.once(bank.pay, "ada", amount=420)

    (doubt,) = bank.asked
    assert (doubt.run_id, doubt.key, doubt.tool, doubt.target, doubt.attempt) == ("r", "k", "Bank.pay", "card 7", 1)
    assert (list(doubt.args), doubt.kwargs) == (["ada"], {"amount": 420})
    assert doubt.idempotency_key == bank.keys[0][1]


def test_reconcile_is_not_asked_about_what_is_known(store):
    bank = Bank(keepstep.NotDone())
    reconcile = bank.answers(None)

    with store.run("r", "w") as run:
        with pytest.raises(keepstep.NotDone):
            call(run, bank, reconcile=reconcile)
        call(run, bank, reconcile=reconcile)
        call(run, bank, reconcile=reconcile)

    assert bank.asked == []


def test_reconcile_that_finds_nothing_lets_whoever_resumes_start_at_once(place):
    dead, heir = place.open(), place.open()
    bank = Bank()
    begin_and_die(place, dead, bank)

    with heir.run("r") as run:
        assert call(run, bank, reconcile=bank.answers(keepstep.NotDone))["number"] == 2

    assert [one.attempt for one in bank.asked] == [1]


# --- workers that die, and workers that come late --------------------------------------------------------------------


def begin_and_die(place, store, bank, key="k"):
    """A worker begins a payment, and dies in it: what it does next is never written."""
    run = store.claim("r", "w")

    def pay(name):
        bank.pay(name)
        place.kill(store)
        raise Cut

    pay.__qualname__ = "Bank.pay"
    with pytest.raises((Cut, keepstep.KeepstepError)):
        run.using(key=key, unsure="raise").once(pay, "ada")


def come_late(place, late, bank, meanwhile, error=None):
    """A worker stands still in a payment; others do something meanwhile; then it wakes, and has been replaced."""
    run = late.claim("r", "w")

    def pay(name):
        paid = bank.pay(name)
        place.freeze(late)
        meanwhile()
        if error is not None:
            raise error
        return paid

    pay.__qualname__ = "Bank.pay"
    with pytest.raises(keepstep.ClaimLost):
        run.using(key="k", unsure="raise", not_done=[CardDeclined]).once(pay, "ada")
    assert place.open().verify("r").ok


def test_a_worker_that_dies_in_a_call_leaves_a_doubt(place):
    dead, heir = place.open(), place.open()
    bank = Bank()
    begin_and_die(place, dead, bank)
    assert status(heir) == [("k", "began")]

    with pytest.raises(keepstep.EffectInDoubt), heir.run("r") as run:
        call(run, bank)
    with pytest.raises(keepstep.EffectInDoubt) as caught, heir.run("r") as run:
        call(run, bank, key="call-2")

    assert caught.value.key == "k"
    assert len(bank.calls) == 1


def test_a_late_workers_result_settles_the_doubt(place):
    late, heir = place.open(), place.open()
    bank = Bank()

    def meanwhile():
        with pytest.raises(keepstep.EffectInDoubt), heir.run("r") as run:
            call(run, bank)

    come_late(place, late, bank, meanwhile)

    assert status(heir) == [("k", "returned")]
    with heir.run("r") as run:
        assert call(run, bank) == {"paid": 1, "number": 1}
    assert len(bank.calls) == 1


def test_a_late_worker_that_knows_that_nothing_happened_frees_the_call(place):
    late, heir = place.open(), place.open()
    bank = Bank()

    come_late(place, late, bank, lambda: heir.claim("r").close(), error=CardDeclined())

    assert status(heir) == [("k", "raised")]
    with heir.run("r") as run:
        assert call(run, bank)["number"] == 2


def test_a_late_worker_that_knows_nothing_settles_nothing(place):
    late, heir = place.open(), place.open()
    bank = Bank()

    come_late(place, late, bank, lambda: heir.claim("r").close(), error=ReadTimeout())

    assert status(heir) == [("k", "began")]
    with pytest.raises(keepstep.EffectInDoubt), heir.run("r") as run:
        call(run, bank)


def test_a_late_workers_result_is_only_evidence_once_the_doubt_was_settled(place):
    late, heir = place.open(), place.open()
    bank = Bank()

    def meanwhile():
        heir.claim("r").close()
        heir.settle("r", "k", happened=True, result="told by ann")

    come_late(place, late, bank, meanwhile)

    with heir.run("r") as run:
        assert call(run, bank) == "told by ann"
    assert len(bank.calls) == 1


def test_a_late_workers_result_is_only_evidence_once_the_call_was_started_again(place):
    late, heir = place.open(), place.open()
    bank = Bank()

    def meanwhile():
        with heir.run("r") as run:
            assert call(run, bank, idempotent=True)["number"] == 2

    come_late(place, late, bank, meanwhile)

    with heir.run("r") as run:
        assert call(run, bank)["number"] == 2


def test_a_late_workers_result_is_not_taken_for_a_second_call_under_way(place):
    late, heir = place.open(), place.open()
    bank = Bank()
    held = []

    def meanwhile():
        held.append(heir.claim("r"))
        bank.errors.append(ReadTimeout())
        with pytest.raises(ReadTimeout):
            call(held[0], bank, reconcile=bank.answers(keepstep.NotDone))

    come_late(place, late, bank, meanwhile)

    assert status(heir) == [("k", "raised")]
    held[0].close()


def test_a_late_worker_of_a_run_that_ended_meanwhile_hears_that_its_claim_is_lost(place):
    late, heir = place.open(), place.open()
    bank = Bank()

    def meanwhile():
        with heir.run("r") as run:
            run.finish("without it")

    come_late(place, late, bank, meanwhile)

    assert heir.look("r").result == "without it"


def test_a_late_worker_of_a_run_that_was_cancelled_hears_that_its_claim_is_lost(place):
    late, heir = place.open(), place.open()
    bank = Bank()

    def meanwhile():
        heir.claim("r").close()
        place.append(heir, "r", Cancelled())

    come_late(place, late, bank, meanwhile)

    assert heir.look("r").status == "cancelled"


def test_a_late_worker_tells_nothing_to_a_run_that_was_created_anew(place):
    late, heir = place.open(), place.open()
    bank = Bank()
    run = late.claim("r", "w")

    def pay(name):
        paid = bank.pay(name)
        place.freeze(late)
        heir.delete("r", force=True)
        dead = place.open()
        begin_and_die(place, dead, bank)
        return paid

    pay.__qualname__ = "Bank.pay"
    with pytest.raises(keepstep.RunGone):
        run.using(key="k").once(pay, "ada")

    assert status(heir) == [("k", "began")]
    assert heir.verify("r").ok


def test_a_late_worker_of_a_deleted_run_hears_that_it_is_gone(place):
    late, heir = place.open(), place.open()
    run = late.claim("r", "w")

    def pay():
        place.freeze(late)
        heir.delete("r", force=True)

    with pytest.raises(keepstep.RunGone):
        run.using(key="k").once(pay)

    assert heir.runs().items == []


# --- told from outside -----------------------------------------------------------------------------------------------


def test_somebody_tells_that_it_happened(store):
    bank = Bank()
    in_doubt(store, bank)

    store.settle("r", "k", happened=True, result={"receipt": 7}, by="ann")

    assert status(store) == [("k", "returned")]
    with store.run("r") as run:
        assert call(run, bank) == {"receipt": 7}
    assert len(bank.calls) == 1
    assert store.verify("r").ok


def test_somebody_tells_that_it_did_not(store):
    bank = Bank()
    in_doubt(store, bank)

    store.settle("r", "k", happened=False)

    assert status(store) == [("k", "raised")]
    with store.run("r") as run:
        assert call(run, bank)["number"] == 2
    assert len({key for _, key in bank.keys}) == 2


def test_a_settled_doubt_is_not_settled_again(store):
    bank = Bank()
    in_doubt(store, bank)
    store.settle("r", "k", happened=True, result=1)

    for happened in (True, False):
        with pytest.raises(keepstep.NotInDoubt) as caught:
            store.settle("r", "k", happened=happened, result=2)
        assert caught.value.key == "k"

    assert store.effects("r")[0].result == 1


def test_what_returned_or_did_not_happen_is_not_settled(store):
    bank = Bank()
    with store.run("r", "w") as run:
        call(run, bank, key="paid")
        bank.errors.append(keepstep.NotDone())
        with pytest.raises(keepstep.NotDone):
            call(run, bank, key="not paid")

    for key in ("paid", "not paid"):
        with pytest.raises(keepstep.NotInDoubt):
            store.settle("r", key, happened=False)

    assert status(store) == [("paid", "returned"), ("not paid", "raised")]


def test_an_unknown_key_or_run_is_not_settled(store):
    in_doubt(store, Bank())

    with pytest.raises(keepstep.NotInDoubt, match="ledger"):
        store.settle("r", "another", happened=True)
    with pytest.raises(keepstep.NoSuchRun):
        store.settle("another", "k", happened=True)


def test_what_is_under_way_is_not_settled(place):
    store, other = place.open(), place.open()
    told = []

    def pay():
        with pytest.raises(keepstep.NotInDoubt, match="under way") as caught:
            other.settle("r", "k", happened=False)
        told.append(caught.value)
        return "paid"

    with store.run("r", "w") as run:
        assert run.using(key="k").once(pay) == "paid"

    assert len(told) == 1
    assert status(store) == [("k", "returned")]


def test_what_a_dead_worker_left_is_settled(place):
    dead, heir = place.open(), place.open()
    bank = Bank()
    begin_and_die(place, dead, bank)

    heir.settle("r", "k", happened=True, result="receipt")

    with heir.run("r") as run:
        assert call(run, bank) == "receipt"
    assert len(bank.calls) == 1


def test_a_doubt_is_settled_while_the_run_is_held(place):
    store, other = place.open(), place.open()
    bank = Bank(ReadTimeout())

    with store.run("r", "w") as run:
        with pytest.raises(keepstep.EffectInDoubt):
            call(run, bank)
        other.settle("r", "k", happened=True, result="receipt")
        assert call(run, bank) == "receipt"

    assert len(bank.calls) == 1


def test_an_effect_without_a_key_is_settled_as_the_ledger_shows_it(store):
    bank = Bank(ReadTimeout())
    with pytest.raises(keepstep.EffectInDoubt) as caught, store.run("r", "w") as run:
        run.using(unsure="raise").once(bank.pay, "ada")
    assert caught.value.key == store.effects("r")[0].key

    store.settle("r", caught.value.key, happened=True, result="receipt")

    with store.run("r") as run:
        assert run.once(bank.pay, "ada") == "receipt"


def test_a_key_of_hex_digits_is_settled_by_its_name(store):
    bank = Bank()
    key = "0123456789abcdef" * 2
    in_doubt(store, bank, key=key)

    store.settle("r", key, happened=True, result="receipt")

    assert status(store) == [(key, "returned")]


def test_an_effect_inside_another_is_settled_as_its_error_names_it(store):
    bank = Bank(ReadTimeout())

    def book(run):
        return call(run, bank, key="pay")

    with pytest.raises(keepstep.EffectInDoubt) as caught, store.run("r", "w") as run:
        run.using(key="book", idempotent=True, not_done=[keepstep.EffectInDoubt]).once(lambda: book(run))

    store.settle("r", caught.value.key, happened=True, result="receipt")

    with store.run("r") as run:
        assert run.using(key="book").once(lambda: book(run)) == "receipt"
    assert len(bank.calls) == 1


@pytest.mark.parametrize(
    ("key", "happened", "error"),
    [
        ("k", None, keepstep.BadInput),
        ("k", "yes", keepstep.BadInput),
        ("", True, keepstep.BadInput),
        (None, True, keepstep.BadInput),
        ("half a pair: \ud800", True, keepstep.BadInput),
    ],
)
def test_a_word_from_outside_that_makes_no_sense_is_refused(store, key, happened, error):
    in_doubt(store, Bank())

    with pytest.raises(error):
        store.settle("r", key, happened=happened)
    with pytest.raises(keepstep.CannotStore):
        store.settle("r", "k", happened=True, result=object())

    assert status(store) == [("k", "doubted")]
