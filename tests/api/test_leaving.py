"""How a block ends: an Exception is a failure of the run, anything else interrupts it."""

# ruff: noqa: PT012 - what leaves a block is what is tested

import asyncio

import pytest

import keepstep
from keepstep.runtime.clock import SystemClock
from keepstep.store.memory import MemoryStore
from keepstep.testing import FaultyStore


class Throttled(Exception):
    """An error that passes."""


class ThrottledHard(Throttled):
    """A kind of it."""


def leave_by(store, error, run_id="r"):
    """A block that saves, and that the error leaves."""
    with pytest.raises(type(error)) as caught, store.run(run_id, "w") as run:
        run.save({"n": 1}, next="tool")
        raise error
    assert caught.value is error


# --- failures --------------------------------------------------------------------------------------------------------


def test_an_exception_makes_the_run_failed(store):
    leave_by(store, ValueError("no such card"))

    look = store.look("r")
    assert look.status == "failed"
    assert (look.state, look.step, look.next) == ({"n": 1}, 1, "tool")
    assert look.holder is None
    assert store.runs(status="failed").items[0].run_id == "r"


def test_the_error_is_kept_with_its_type_message_and_traceback(store):
    leave_by(store, Throttled("wait a bit"))

    error = store.look("r").error
    assert error["type"] == f"{__name__}.Throttled"
    assert error["message"] == "wait a bit"
    assert "in leave_by" in error["traceback"]
    assert error["traceback"].rstrip().endswith("Throttled: wait a bit")


def test_the_traceback_tells_the_cause(store):
    with pytest.raises(Throttled), store.run("r", "w"):
        try:
            {}["card"]
        except KeyError as error:
            raise Throttled("later") from error

    assert "KeyError: 'card'" in store.look("r").error["traceback"]


def test_a_failed_run_goes_on_when_it_is_opened_again(store):
    leave_by(store, ValueError("once"))

    with store.run("r") as run:
        assert (run.state, run.next) == ({"n": 1}, "tool")
        run.save({"n": 2})

    look = store.look("r")
    assert (look.status, look.error, look.state) == ("ready", None, {"n": 2})


def test_a_run_can_fail_again(store):
    leave_by(store, ValueError("first"))
    with pytest.raises(ValueError, match="second"), store.run("r"):
        raise ValueError("second")

    assert store.look("r").error["message"] == "second"


class Mute(Exception):
    """An error whose message cannot be made."""

    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error", [Mute(), ValueError("half a pair: \ud800"), ValueError("x" * 1_000_000), ValueError(b"\xff", object())]
)
def test_an_error_that_is_hard_to_keep_is_kept_all_the_same(store, error):
    leave_by(store, error)

    kept = store.look("r").error
    assert kept["type"].endswith(type(error).__qualname__)
    assert len(kept["message"]) < 20_000
    assert len(kept["traceback"]) < 40_000


def test_a_group_of_failures_is_a_failure(store):
    leave_by(store, ExceptionGroup("both", [ValueError("one"), TypeError("two")]))

    assert store.look("r").status == "failed"
    assert "TypeError: two" in store.look("r").error["traceback"]


def test_an_error_through_two_blocks_fails_both_runs(store):
    with pytest.raises(ValueError, match="both"), store.run("outer", "w"), store.run("inner", "w"):
        raise ValueError("both")

    assert [one.status for one in store.runs().items] == ["failed", "failed"]


def test_an_error_that_is_caught_inside_fails_nothing(store):
    with store.run("r", "w") as run:
        try:
            raise ValueError
        except ValueError:
            run.save(["caught"])

    assert store.look("r").status == "ready"


# --- interruptions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        SystemExit(1),
        GeneratorExit(),
        asyncio.CancelledError(),
        keepstep.Stop(),
        keepstep.Stop("for today"),
        BaseExceptionGroup("both", [KeyboardInterrupt(), ValueError()]),
    ],
    ids=repr,
)
def test_an_interruption_leaves_the_run_ready(store, error):
    leave_by(store, error)

    look = store.look("r")
    assert (look.status, look.error, look.holder, look.state) == ("ready", None, None, {"n": 1})


def test_types_that_are_named_interrupt_as_well(place):
    store = place.open(interrupts=(Throttled, TimeoutError))

    for number, error in enumerate((Throttled(), ThrottledHard(), TimeoutError())):
        leave_by(store, error, f"r{number}")
        assert store.look(f"r{number}").status == "ready"
    leave_by(store, ValueError(), "other")
    assert store.look("other").status == "failed"


def test_one_type_need_not_be_a_tuple(memory_store):
    store = keepstep.open("memory:", interrupts=Throttled)  # type: ignore[arg-type]  # people do

    leave_by(store, Throttled())

    assert store.look("r").status == "ready"
    store.close()


@pytest.mark.parametrize("interrupts", ["TimeoutError", 5, (int,), (TimeoutError(),), [ValueError]])
def test_interrupts_are_exception_classes(interrupts):
    with pytest.raises(keepstep.BadInput, match="interrupts="):
        keepstep.open("memory:", interrupts=interrupts)


def test_a_generator_that_is_thrown_away_leaves_its_run_ready(store):
    def steps():
        with store.run("r", "w") as run:
            run.save([1])
            yield 1
            run.save([2])

    going = steps()
    next(going)
    going.close()

    look = store.look("r")
    assert (look.status, look.state) == ("ready", [1])


# --- the end inside the block ----------------------------------------------------------------------------------------


def test_finish_ends_the_run(store):
    with store.run("r", "w") as run:
        run.save([1])
        run.finish({"total": 1})
        assert not run.is_open

    look = store.look("r")
    assert (look.status, look.result, look.state, look.step) == ("finished", {"total": 1}, [1], 1)


def test_after_finish_nothing_can_be_saved(store):
    with store.run("r", "w") as run:
        run.finish(1)
        for verb in (lambda: run.save([2]), lambda: run.finish(2), lambda: run.note("x"), lambda: run.tag(a=1)):
            with pytest.raises(keepstep.WrongUse):
                verb()

    assert store.look("r").result == 1


def test_an_exception_after_finish_does_not_undo_it(store):
    with pytest.raises(ValueError, match="late"), store.run("r", "w") as run:
        run.finish("done")
        raise ValueError("late")

    look = store.look("r")
    assert (look.status, look.result, look.error) == ("finished", "done", None)


def test_a_result_that_cannot_be_stored_does_not_end_the_run(store):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.CannotStore, match=r'result\["client"\]'):
            run.finish({"client": object()})
        assert run.is_open
        run.finish({"client": "closed"})

    assert store.look("r").result == {"client": "closed"}


def test_a_state_that_cannot_be_stored_changes_nothing(store):
    with store.run("r", "w") as run:
        run.save({"n": 1})
        with pytest.raises(keepstep.CannotStore, match=r'state\["messages"\]\[1\]'):
            run.save({"n": 2, "messages": ["hi", object()]})
        assert (run.state, run.step) == ({"n": 1}, 1)
        run.save({"n": 2})

    assert store.look("r").state == {"n": 2}
    assert store.look("r").step == 2


# --- the claim is gone -----------------------------------------------------------------------------------------------


def test_a_block_whose_claim_was_lost_leaves_the_successor_alone(place):
    frozen, heir = place.open(), place.open()
    with pytest.raises(keepstep.ClaimLost), frozen.run("r", "w") as run:
        run.save([1])
        place.freeze(frozen)
        successor = heir.claim("r")
        run.save([2])

    assert heir.look("r").status == "running"
    assert successor.save([3]) == 2


def test_a_failure_in_a_block_whose_claim_was_lost_is_not_the_runs(place):
    frozen, heir = place.open(), place.open()
    with pytest.raises(ValueError, match="mine"), frozen.run("r", "w") as run:
        place.freeze(frozen)
        heir.claim("r")
        raise ValueError("mine")

    assert heir.look("r").status == "running"
    assert not run.is_open


def test_a_block_whose_run_was_deleted_ends_quietly(store):
    with store.run("r", "w") as run:
        store.delete("r", force=True)
        with pytest.raises(keepstep.RunGone):
            run.save([1])

    assert store.load("r") is None


# --- when leaving cannot be recorded ---------------------------------------------------------------------------------


def test_an_error_is_not_hidden_by_one_in_recording_it():
    faulty = FaultyStore(MemoryStore(SystemClock()), how="full")
    store = keepstep.open(faulty)
    with pytest.raises(ValueError, match="mine") as caught, store.run("r", "w"):
        faulty.at = faulty.operations + 1
        raise ValueError("mine")

    assert "No space left" in caught.value.__notes__[0]
    store.close()


def test_an_error_too_large_to_keep_is_not_hidden_either(place):
    store = place.open(limits=keepstep.Limits(body_bytes=60))
    with pytest.raises(ValueError, match="mine") as caught, store.run("r", "w"):
        raise ValueError("mine")

    assert "limit" in caught.value.__notes__[0]
    assert store.look("r").holder is None


@pytest.mark.parametrize("error", [None, ValueError("mine"), KeyboardInterrupt()], ids=repr)
def test_a_run_whose_end_could_not_be_recorded_is_not_held_for_ever(error):
    faulty = FaultyStore(MemoryStore(SystemClock()), how="full")
    store = keepstep.open(faulty)
    with pytest.raises((keepstep.StoreFull, ValueError, KeyboardInterrupt)), store.run("r", "w"):
        faulty.at = faulty.operations + 1
        if error is not None:
            raise error

    with store.run("r") as run:
        run.save([1])
    store.close()
