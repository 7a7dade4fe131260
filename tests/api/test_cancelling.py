"""Somebody asks for a run to be cancelled: at once when nobody holds it, by its holder otherwise."""

import asyncio
import threading
from contextlib import suppress

import pytest

import keepstep
from keepstep.log.records import CancelRequested, Reopened, decode_head
from keepstep.runtime.clock import SystemClock
from tests.conftest import KINDS, MODES
from tests.handles import act
from tests.places import Place


def kinds(store, run_id="r"):
    """The kinds of a run's records, without how it began."""
    found = act(store, lambda engine: engine.store.records(run_id, bodies=False))
    return [decode_head(one.head).kind for one in found if one.seq > 1]


def pay(amount):
    return amount


def ask(store, *requests):
    """Somebody asks for the run to be cancelled; gives what each is told."""
    return [store.cancel("r", reason="wrong customer", by="ada") for _ in requests or [1]]


def told(place, store):
    """Somebody asks for the run to be cancelled, and the heartbeat tells the holder."""
    assert ask(store) == ["requested"]
    place.beat(store)


# --- a run that nobody holds -----------------------------------------------------------------------------------------


def test_a_run_that_nobody_holds_is_cancelled_at_once(place):
    store = place.open()
    store.save("r", {"n": 1}, workflow="w")

    assert ask(store) == ["cancelled"]

    assert kinds(store) == ["saved", "cancel_requested", "cancelled"]
    look = store.look("r")
    assert (look.status, look.cancelling, look.state) == ("cancelled", False, {"n": 1})
    assert look.cancel == {"reason": "wrong customer", "by": "ada", "at": look.changed}
    assert store.due().items == []
    assert store.verify("r").ok


def test_nobody_enters_a_cancelled_run_and_the_error_says_why(store):
    store.save("r", {}, workflow="w")
    ask(store)

    with pytest.raises(keepstep.RunCancelled, match=r"by ada \(wrong customer\)") as caught:
        store.claim("r")

    assert (caught.value.reason, caught.value.by) == ("wrong customer", "ada")
    assert store.carry(pay, "r").status == "cancelled"
    with pytest.raises(keepstep.NotAllowed):
        store.save("r", {})


def test_who_and_why_need_not_be_said(store):
    store.save("r", {}, workflow="w")

    assert store.cancel("r") == "cancelled"

    look = store.look("r")
    assert (look.cancel["reason"], look.cancel["by"]) == (None, None)
    with pytest.raises(keepstep.RunCancelled, match=r"Run 'r' was cancelled\. Fork"):
        store.claim("r")


def test_a_run_that_was_not_cancelled_has_no_request(store):
    store.save("r", {}, workflow="w")

    assert (store.look("r").cancel, store.look("r").cancelling) == (None, False)


def test_a_question_of_a_cancelled_run_is_not_open_any_more(store):
    with store.run("r", "w") as run:
        run.confirm("Refund?")
    gate = store.look("r").gates[0]

    assert ask(store) == ["cancelled"]

    assert store.inbox().items == []
    with pytest.raises(keepstep.NoSuchGate):
        store.answer(gate, True)


def test_a_sleeping_run_is_cancelled_and_never_due(place):
    store = place.open()
    with store.run("r", "w") as run:
        run.sleep(60)

    assert ask(store) == ["cancelled"]

    place.clock.turn(3600)
    assert store.due().items == []
    assert store.look("r").status == "cancelled"


def test_a_failed_run_is_cancelled_and_not_opened_again(store):
    with pytest.raises(ValueError, match="no"), store.run("r", "w"):
        raise ValueError("no")

    assert ask(store) == ["cancelled"]

    look = store.look("r")
    assert (look.status, look.cancel["by"], look.cancel["reason"]) == ("cancelled", "ada", "wrong customer")
    with pytest.raises(keepstep.RunCancelled, match="by ada"):
        store.claim("r")


def test_the_run_of_a_dead_owner_is_cancelled_at_once(place):
    dead, store = place.open(), place.open()
    dead.claim("r", "w")
    place.kill(dead)

    assert ask(store) == ["cancelled"]

    assert kinds(store) == ["claimed", "released", "cancel_requested", "cancelled"]
    assert store.look("r").holder is None


def test_a_finished_run_is_not_cancelled(store):
    store.carry(lambda run: 5, "r", "w")

    with pytest.raises(keepstep.NotAllowed, match="finished, so there is nothing to cancel"):
        ask(store)

    assert store.look("r").result == 5


def test_a_cancelled_run_is_cancelled_again_without_a_record(store):
    store.save("r", {}, workflow="w")
    ask(store)
    before = store.look("r")

    assert store.cancel("r", reason="another", by="bob") == "cancelled"

    assert store.look("r") == before


def test_an_unknown_run_is_named_with_those_near_it(store):
    store.save("order-1", {}, workflow="w")

    with pytest.raises(keepstep.NoSuchRun) as caught:
        store.cancel("order-2")

    assert caught.value.near == ("order-1",)


def test_a_cancelled_run_can_be_forked(store):
    store.save("r", {"n": 1}, workflow="w")
    ask(store)

    fork = store.fork("r", id="again")

    assert (fork.status, fork.state, fork.cancel) == ("ready", {"n": 1}, None)


@pytest.mark.parametrize("bad", [{"reason": 5}, {"reason": b"x"}, {"by": 5}, {"by": ""}], ids=repr)
def test_a_bad_argument_cancels_nothing(memory_store, bad):
    memory_store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.BadInput):
        memory_store.cancel("r", **bad)

    assert memory_store.look("r").status == "ready"


# --- the holder ------------------------------------------------------------------------------------------------------


def test_the_holder_is_asked_once(store):
    with store.run("r", "w"):
        assert ask(store, 1, 2, 3) == ["requested"] * 3

        assert kinds(store) == ["claimed", "cancel_requested"]
        look = store.look("r")
        assert (look.status, look.cancelling, look.cancel["by"]) == ("running", True, "ada")


CALLS = {
    "save": lambda run: run.save({"n": 2}),
    "finish": lambda run: run.finish("done"),
    "note": lambda run: run.note("here"),
    "tag": lambda run: run.tag(a=1),
    "tag with nothing": lambda run: run.tag(),
    "memo": lambda run: run.memo(pay, 2),
    "once": lambda run: run.once(pay, 2),
    "ask": lambda run: run.ask("Refund?"),
    "ask and wait": lambda run: run.ask("Refund?", wait=True),
    "sleep": lambda run: run.sleep(5),
    "sleep for nothing": lambda run: run.sleep(0),
    "receive": lambda run: run.receive("paid"),
    "gather": lambda run: run.gather(),
    "once known": lambda run: run.using(key="k").once(pay, 1),
    "answered": lambda run: run.ask("Sure?", key="sure"),
}


@pytest.mark.parametrize("name", CALLS)
def test_any_call_after_a_heartbeat_raises_cancelled_and_writes_nothing(place, name):
    store = place.open()
    with store.run("r", "w") as run:
        run.using(key="k").once(pay, 1)
        run.ask("Sure?", key="sure")
    store.answer(store.look("r").gates[0], "yes")
    with store.run("r") as run:
        told(place, store)
        before = kinds(store)

        with pytest.raises(keepstep.Cancelled) as caught:
            CALLS[name](run)

        assert kinds(store) == before
        assert (caught.value.run_id, caught.value.reason, caught.value.by) == ("r", "wrong customer", "ada")
        assert "Run 'r' is cancelled by ada (wrong customer)" in str(caught.value)
        assert (run.cancelled, run.paused, run.is_open) == (True, False, True)
    assert kinds(store) == [*before, "cancelled"]
    assert (store.look("r").status, run.cancelled, run.paused, run.is_open) == ("cancelled", True, False, False)
    assert store.verify("r").ok


@pytest.mark.parametrize("name", ["save", "note", "tag", "once", "ask", "sleep", "receive"])
def test_without_a_heartbeat_the_first_call_that_would_write_finds_out(store, name):
    with store.run("r", "w") as run:
        ask(store)
        CALLS[name](run)

    assert store.look("r").status == "cancelled"
    assert not {"saved", "noted", "tagged", "began", "asked", "slept"} & set(kinds(store))


def test_every_later_call_raises_the_same(place):
    store = place.open()
    with store.run("r", "w") as run:
        told(place, store)
        errors = []
        for call in CALLS.values():
            try:
                call(run)
            except keepstep.Cancelled as error:
                errors.append(error)

        assert len(errors) == len(CALLS)
        assert {id(error) for error in errors} == {id(errors[0])}
    assert store.look("r").status == "cancelled"


def test_cancelled_ends_the_block_and_goes_no_further(place):
    store = place.open()
    steps = []
    with store.run("r", "w") as run:
        run.save({"n": 1})
        told(place, store)
        steps.append("before")
        run.save({"n": 2})
        steps.append("after")

    assert steps == ["before"]
    look = store.look("r")
    assert (look.status, look.state, look.holder, look.cancelling) == ("cancelled", {"n": 1}, None, False)
    assert look.cancel["at"] <= look.changed


def test_a_block_that_makes_no_more_calls_is_cancelled_at_its_end(store):
    with store.run("r", "w") as run:
        ask(store)
        assert not run.cancelled

    assert run.cancelled
    assert kinds(store) == ["claimed", "cancel_requested", "cancelled"]


def test_who_swallows_it_is_cancelled_all_the_same(place):
    store = place.open()
    with store.run("r", "w") as run:
        told(place, store)
        with suppress(keepstep.Cancelled):
            run.save({"n": 1})

    assert store.look("r").status == "cancelled"


def leave_by(place, store, error, known):
    with store.run("r", "w") as run:
        ask(store)
        if known:
            place.beat(store)
            with pytest.raises(keepstep.Cancelled):
                run.save({"n": 1})
        raise error


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), keepstep.Stop()], ids=repr)
def test_another_exception_goes_on_and_the_run_is_cancelled(place, error, known):
    store = place.open()

    with pytest.raises(type(error)) as caught:
        leave_by(place, store, error, known)

    assert caught.value is error
    assert (store.look("r").status, store.look("r").error) == ("cancelled", None)


def test_a_finish_before_the_request_is_known_wins(store):
    with store.run("r", "w") as run:
        ask(store)
        run.finish("done")

    look = store.look("r")
    assert (look.status, look.result, look.cancel, run.cancelled) == ("finished", "done", None, False)


def test_a_question_that_was_asked_before_does_not_keep_the_run(store):
    with store.run("r", "w") as run:
        try:
            run.ask("Refund?")
        finally:
            ask(store)

    assert (store.look("r").status, run.cancelled, run.paused) == ("cancelled", True, False)
    assert store.inbox().items == []


def test_closing_the_handle_cancels_the_run(store):
    run = store.claim("r", "w")
    ask(store)

    run.close()

    assert store.look("r").status == "cancelled"


def test_closing_the_store_cancels_the_run(place):
    store, other = place.open(), place.open()
    store.claim("r", "w")
    ask(other)

    store.close()

    assert other.look("r").status == "cancelled"


def test_what_others_write_besides_cancels_nothing(place):
    store = place.open()
    with store.run("r", "w") as run:
        store.tag("r", a=1)
        store.send("r", "paid", 5)
        place.beat(store)

        assert run.receive("paid") == 5
        assert run.once(pay, 2) == 2
        run.save({"n": 1})
        assert not run.cancelled

    assert store.look("r").status == "ready"


def test_a_claim_that_is_lost_is_lost_and_not_cancelled(place):
    frozen, heir = place.open(), place.open()
    run = frozen.claim("r", "w")
    place.freeze(frozen)
    heir.claim("r")
    assert ask(heir) == ["requested"]

    with pytest.raises(keepstep.ClaimLost):
        run.once(pay, 1)

    assert not run.cancelled
    assert heir.look("r").status == "running"


def test_carry_tells_that_the_run_is_cancelled(place):
    store = place.open()

    def work(run):
        told(place, store)
        return "done"

    outcome = store.carry(work, "r", "w")

    assert (outcome.status, outcome.result, outcome.error) == ("cancelled", None, None)


def test_a_request_ends_its_own_block_and_leaves_another_ready(place):
    store = place.open()
    with store.run("r", "w") as run:
        with store.run("inner", "w"):
            told(place, store)
            run.save({"n": 1})
        raise AssertionError("the block has ended")

    assert (store.look("r").status, store.look("inner").status) == ("cancelled", "ready")


# --- effects under way -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "status", "kind"),
    [
        (None, "returned", "returned"),
        (keepstep.NotDone("no"), "raised", "raised"),
        (OSError("?"), "doubted", "doubted"),
    ],
    ids=["returns", "did not happen", "raises"],
)
@pytest.mark.parametrize("known", [True, False])
def test_how_an_effect_under_way_ended_is_recorded(place, ending, status, kind, known):
    store = place.open()

    def charge():
        ask(store)
        if known:
            place.beat(store)
        if ending is not None:
            raise ending
        return "receipt"

    try:
        with store.run("r", "w") as run:
            run.once(charge)
            run.save({"n": 1})
    except (keepstep.NotDone, OSError) as error:
        assert error is ending  # noqa: PT017 - what is raised by whom differs

    assert store.look("r").status == "cancelled"
    assert [effect.status for effect in store.effects("r")] == [status]
    assert kinds(store) == ["claimed", "began", "cancel_requested", kind, "cancelled"]


def test_a_result_of_a_call_that_is_safe_to_repeat_is_kept_too(place):
    store = place.open()

    def model():
        told(place, store)
        return "words"

    with store.run("r", "w") as run:
        assert run.memo(model) == "words"
        run.save({"n": 1})

    assert kinds(store) == ["claimed", "cancel_requested", "returned", "cancelled"]


def test_leaving_waits_for_effects_under_way_elsewhere(place):
    store = place.open(clock=SystemClock())
    begun, go_on = threading.Event(), threading.Event()

    def charge():
        begun.set()
        assert go_on.wait(30)
        return "receipt"

    with store.run("r", "w") as run:
        other = threading.Thread(target=lambda: run.once(charge), daemon=True)
        other.start()
        assert begun.wait(30)
        told(place, store)
        threading.Timer(0.05, go_on.set).start()
        run.save({"n": 1})
    other.join(30)

    assert kinds(store) == ["claimed", "began", "cancel_requested", "returned", "cancelled"]


# --- a holder that dies before it sees the request -------------------------------------------------------------------


def asked_of_the_dead(place):
    dead, store = place.open(), place.open()
    dead.claim("r", "w")
    assert ask(store) == ["requested"]
    place.kill(dead)
    return store


def test_who_enters_after_a_holder_that_died_with_a_request_finds_it_cancelled(place):
    store = asked_of_the_dead(place)

    with pytest.raises(keepstep.RunCancelled, match="by ada"):
        store.claim("r")

    assert store.look("r").status == "cancelled"


def test_a_worker_takes_no_run_that_is_to_be_cancelled(place):
    store = asked_of_the_dead(place)

    assert store.claim_due() == []

    assert store.look("r").status == "cancelled"


def test_a_run_that_its_owner_holds_in_name_only_is_cancelled_by_the_heartbeat(place):
    store = place.open()
    run = store.claim("r", "w")
    store._session._engine.ownership.drop(run._claim.writer)
    ask(store)

    place.beat(store)

    assert store.look("r").status == "cancelled"
    assert kinds(store) == ["claimed", "cancel_requested", "released", "cancelled"]


def test_a_run_that_is_opened_again_has_no_request(place):
    store = place.open()
    store.save("r", {"n": 1}, workflow="w")
    ask(store)
    place.append(store, "r", Reopened())

    with store.run("r") as run:
        run.save({"n": 2})

    assert (store.look("r").status, store.look("r").cancel) == ("ready", None)


def test_a_request_without_a_body_is_one(place):
    store = place.open()
    with store.run("r", "w") as run:
        place.append(store, "r", CancelRequested())
        with pytest.raises(keepstep.Cancelled, match=r"Run 'r' is cancelled\. It leaves"):
            run.save({"n": 1})

    assert store.look("r").cancel["reason"] is None


# --- a task inside an async block ------------------------------------------------------------------------------------


@pytest.fixture(params=KINDS)
def room(request, folder):
    """Room for a store that is opened on a loop of the test's own."""
    place = Place(request.param, MODES[1], folder)
    yield place
    place.close()


def on_a_loop(room, work):
    """What `work(store)` gives, on a loop of its own; what it begins has to end within seconds."""

    async def main():
        async with keepstep.open_async(room.url, clock=room.clock, lease=30.0) as store:
            return await asyncio.wait_for(work(store), 30)

    return asyncio.run(main())


async def interrupt(room, store, begun):
    """Somebody asks once it has begun, and the heartbeat sees it."""
    await begun.wait()
    assert await store.cancel("r", reason="wrong customer", by="ada") == "requested"
    await asyncio.to_thread(room.beat, store)


async def forever(begun):
    begun.set()
    await asyncio.Event().wait()


def model(begun):
    async def long_call():
        await forever(begun)

    return long_call


def test_a_request_reaches_a_task_inside_a_long_call(room):
    async def work(store):
        begun = asyncio.Event()
        other = asyncio.create_task(interrupt(room, store, begun))
        async with store.run("r", "w") as run:
            await run.memo(model(begun))
            raise AssertionError("it was not interrupted")
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0)  # the task goes on
        await other
        look = await store.look("r")
        return look.status, look.cancel["by"], run.cancelled, run.is_open

    assert on_a_loop(room, work) == ("cancelled", "ada", True, False)


def test_it_reaches_whatever_the_block_awaits(room):
    async def work(store):
        begun = asyncio.Event()
        other = asyncio.create_task(interrupt(room, store, begun))
        async with store.run("r", "w"):
            await forever(begun)
        await other
        return (await store.look("r")).status

    assert on_a_loop(room, work) == "cancelled"


def test_carry_is_reached_as_well(room):
    async def work(store):
        begun = asyncio.Event()
        other = asyncio.create_task(interrupt(room, store, begun))

        async def carried(run):
            await run.memo(model(begun))

        outcome = await store.carry(carried, "r", "w")
        await other
        return outcome.status, outcome.error

    assert on_a_loop(room, work) == ("cancelled", None)


def test_an_effect_that_is_interrupted_is_in_doubt(room):
    async def work(store):
        begun = asyncio.Event()

        async def charge():
            await forever(begun)

        other = asyncio.create_task(interrupt(room, store, begun))
        async with store.run("r", "w") as run:
            await run.once(charge)
        await other
        return (await store.look("r")).status, [one.status for one in await store.effects("r")]

    assert on_a_loop(room, work) == ("cancelled", ["doubted"])


def test_who_is_cancelled_by_others_as_well_is_cancelled(room):
    async def inside(store, begun):
        async with store.run("r", "w") as run:
            try:
                await run.memo(model(begun))
            except asyncio.CancelledError:
                asyncio.current_task().cancel()  # somebody else, at the same time
                raise

    async def work(store):
        begun = asyncio.Event()
        task = asyncio.create_task(inside(store, begun))
        await interrupt(room, store, begun)
        with pytest.raises(asyncio.CancelledError):
            await task
        await store._session.engine.runtime.drain(store._session.engine.queue)  # who is cancelled does not wait for it
        return (await store.look("r")).status, task.cancelled()

    assert on_a_loop(room, work) == ("cancelled", True)


def test_a_task_that_is_cancelled_by_others_alone_leaves_the_run_ready(room):
    async def inside(store, begun):
        async with store.run("r", "w") as run:
            await run.memo(model(begun))

    async def work(store):
        begun = asyncio.Event()
        task = asyncio.create_task(inside(store, begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await store.look("r")).status

    assert on_a_loop(room, work) == "ready"


def test_what_others_write_interrupts_nobody(room):
    async def work(store):
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def short_call():
            begun.set()
            await go_on.wait()
            return "words"

        async def tag():
            await begun.wait()
            await store.tag("r", a=1)
            await asyncio.to_thread(room.beat, store)
            await asyncio.sleep(0.05)
            go_on.set()

        other = asyncio.create_task(tag())
        async with store.run("r", "w") as run:
            words = await run.memo(short_call)
        await other
        return words, (await store.look("r")).status

    assert on_a_loop(room, work) == ("words", "ready")


def test_an_exception_instead_of_the_interruption_goes_on(room):
    async def inside(store, begun):
        async with store.run("r", "w"):
            try:
                await forever(begun)
            except asyncio.CancelledError:
                raise ValueError("instead") from None

    async def work(store):
        begun = asyncio.Event()
        other = asyncio.create_task(interrupt(room, store, begun))
        with pytest.raises(ValueError, match="instead"):
            await inside(store, begun)
        await other
        return (await store.look("r")).status, asyncio.current_task().cancelling()

    assert on_a_loop(room, work) == ("cancelled", 0)


def test_a_task_that_swallows_the_interruption_is_told_at_its_next_call(room):
    async def work(store):
        begun = asyncio.Event()
        other = asyncio.create_task(interrupt(room, store, begun))
        async with store.run("r", "w") as run:
            with suppress(asyncio.CancelledError):
                await forever(begun)
            with pytest.raises(keepstep.Cancelled):
                await run.save({"n": 1})
        await other
        return (await store.look("r")).status, asyncio.current_task().cancelling()

    assert on_a_loop(room, work) == ("cancelled", 0)


def test_a_branch_that_finds_out_interrupts_the_others(room):
    async def work(store):
        begun = asyncio.Event()

        async def branch(run):
            await begun.wait()
            await store.cancel("r")
            await run.save({"n": 1})  # no heartbeat yet: the append does not fit

        async with store.run("r", "w") as run:
            await run.gather(run.memo(model(begun)), branch(run))
            raise AssertionError("the block has ended")
        return (await store.look("r")).status, asyncio.current_task().cancelling()

    assert on_a_loop(room, work) == ("cancelled", 0)


def test_the_interruption_of_an_outer_block_leaves_the_inner_run_ready(room):
    async def work(store):
        begun = asyncio.Event()
        other = asyncio.create_task(interrupt(room, store, begun))
        async with store.run("r", "w"), store.run("inner", "w"):
            await forever(begun)
        await other
        return (await store.look("r")).status, (await store.look("inner")).status

    assert on_a_loop(room, work) == ("cancelled", "ready")
