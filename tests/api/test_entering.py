"""Opening a run: it is claimed, or the reason why not is raised and nothing is written."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

import keepstep
from keepstep.log.records import Answered, Asked, Cancelled, Sent, Slept
from keepstep.testing import Clock

KEY = b"k" * 16


def in_seconds(clock, seconds):
    return clock.now_us() + int(seconds * 1e6)


def as_datetime(at_us):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)


def pause(place, store, *waits):
    """Have run "r" wait for something."""
    place.leave_to_wait(store, store.claim("r", "w"), *waits)


# --- creating and continuing -----------------------------------------------------------------------------------------


def test_a_workflow_creates_the_run(store):
    with store.run("r", workflow="report") as run:
        assert (run.id, run.workflow, run.state, run.step, run.next) == ("r", "report", None, None, None)
        assert (run.epoch, run.deaths, run.tags, run.label, run.is_open) == (1, 0, {}, None, True)
        assert store.look("r").status == "running"
    assert store.look("r").status == "ready"


def test_a_block_does_nothing_before_it_is_entered(store):
    store.run("r", workflow="w")

    assert store.runs().items == []


def test_a_run_goes_on_where_it_was_left(store):
    with store.run("r", "w") as run:
        run.save({"todo": ["a"]}, next="plan", label="start")
        run.tag(customer="ada")

    with store.run("r") as run:
        assert (run.state, run.step, run.next, run.label) == ({"todo": ["a"]}, 1, "plan", "start")
        assert run.tags == {"customer": "ada"}
        assert run.save({"todo": []}) == 2


def test_every_claim_has_a_higher_epoch(store):
    epochs = []
    for _ in range(3):
        with store.run("r", "w") as run:
            epochs.append(run.epoch)

    assert epochs == [1, 2, 3]


def test_a_claim_without_a_block_is_the_same(store):
    run = store.claim("r", "w")
    run.save([1])
    run.close()
    run.close()

    assert store.look("r").status == "ready"
    assert not run.is_open


def test_a_claimed_run_is_a_block_itself(store):
    with store.claim("r", "w") as run:
        run.save([1])

    assert store.look("r").status == "ready"


# --- no such run -----------------------------------------------------------------------------------------------------


def test_without_a_workflow_no_run_is_created(store):
    with pytest.raises(keepstep.NoSuchRun) as caught, store.run("r"):
        pass

    assert caught.value.run_id == "r"
    assert caught.value.near == ()
    assert "workflow=" in str(caught.value)
    assert store.runs().items == []


VERBS = {
    "claim": lambda store, run_id: store.claim(run_id),
    "save": lambda store, run_id: store.save(run_id, {}),
    "look": lambda store, run_id: store.look(run_id),
    "history": lambda store, run_id: store.history(run_id),
    "at": lambda store, run_id: store.at(run_id),
    "diff": lambda store, run_id: store.diff(run_id),
    "fork": lambda store, run_id: store.fork(run_id, id="other"),
    "tag": lambda store, run_id: store.tag(run_id, a=1),
    "note": lambda store, run_id: store.note(run_id, "hi"),
    "verify": lambda store, run_id: store.verify(run_id),
    "size": lambda store, run_id: store.size(run_id),
    "carry": lambda store, run_id: store.carry(lambda run: 1, run_id),
}


def test_a_mistyped_id_is_told_the_ones_near_it(store):
    for run_id in ("report-41", "report-42", "invoice"):
        store.save(run_id, {}, workflow="w")

    for verb in VERBS.values():
        with pytest.raises(keepstep.NoSuchRun) as caught:
            verb(store, "reprot-42")
        assert caught.value.near[0] == "report-42"
        assert "invoice" not in caught.value.near
        assert "report-42" in str(caught.value)


def test_an_id_that_begins_otherwise_finds_the_near_ones_too(store):
    store.save("report-42", {}, workflow="w")

    with pytest.raises(keepstep.NoSuchRun) as caught:
        store.look("eport-42")

    assert caught.value.near == ("report-42",)


# --- another workflow ------------------------------------------------------------------------------------------------


def test_another_workflows_run_is_not_entered(store):
    store.save("r", {}, workflow="refund")

    with pytest.raises(keepstep.WrongWorkflow) as caught, store.run("r", workflow="report"):
        pass

    assert (caught.value.run_id, caught.value.has, caught.value.asked) == ("r", "refund", "report")
    assert store.look("r").status == "ready"
    assert store.look("r").workflow == "refund"


# --- held ------------------------------------------------------------------------------------------------------------


def test_a_held_run_says_by_whom_and_until_when(place):
    holder, other = place.open(), place.open()
    run = holder.claim("r", "w")

    with pytest.raises(keepstep.RunHeld) as caught:
        other.claim("r")

    look = other.look("r")
    assert caught.value.owner == look.holder.owner
    assert caught.value.until == look.holder.until == as_datetime(in_seconds(place.clock, 30))
    assert look.holder.stands
    run.save([1])


def test_the_same_store_cannot_claim_a_run_twice(store):
    run = store.claim("r", "w")

    with pytest.raises(keepstep.RunHeld):
        store.claim("r")

    run.save([1])


def test_waiting_ends_when_the_holder_leaves(place):
    holder = place.open()
    run = holder.claim("r", "w")
    waiter = place.open(clock=WhileSleeping(run.close))

    claimed = waiter.claim("r", wait="20s")

    assert claimed.epoch == 2


def test_waiting_ends_after_its_time(place):
    slept = []
    holder, waiter = place.open(), place.open(clock=WhileSleeping(lambda: slept.append(1)))
    holder.claim("r", "w")
    start_us = waiter._session.options.clock.now_us()

    with pytest.raises(keepstep.RunHeld):
        waiter.claim("r", wait=timedelta(seconds=10))

    assert waiter._session.options.clock.now_us() == start_us + 10_000_000
    assert slept


@pytest.mark.parametrize("wait", ["soon", "", -1, "-1s", True, None, float("nan"), float("inf"), [1], "1m30"])
def test_a_wait_that_is_no_time_is_refused(memory_store, wait):
    with pytest.raises(keepstep.BadInput, match="wait="):
        memory_store.claim("r", "w", wait=wait)

    assert memory_store.runs().items == []


@pytest.mark.parametrize("wait", [0, 1, 0.5, "90s", "1m", "1h30m", "250ms", timedelta(minutes=1)])
def test_a_wait_is_written_as_people_write_times(memory_store, wait):
    memory_store.claim("r", "w", wait=wait).close()


class WhileSleeping(Clock):
    """A clock that does something when somebody sleeps."""

    def __init__(self, act):
        super().__init__()
        self._act = act

    def sleep(self, seconds):
        super().sleep(seconds)
        self._act()

    async def pause(self, seconds):
        await asyncio.to_thread(self.sleep, seconds)


# --- the holder is gone ----------------------------------------------------------------------------------------------


def test_a_dead_owners_run_is_entered(place):
    dead, heir = place.open(), place.open()
    dead.claim("r", "w").save([1])
    place.kill(dead)

    with heir.run("r") as run:
        assert (run.state, run.epoch, run.deaths) == ([1], 2, 1)


def test_a_frozen_owners_run_is_entered_after_its_lease(place):
    frozen, heir = place.open(), place.open()
    held = frozen.claim("r", "w")
    held.save([1])
    place.freeze(frozen)

    with heir.run("r") as run:
        assert (run.state, run.epoch, run.deaths) == ([1], 2, 1)
        with pytest.raises(keepstep.ClaimLost) as caught:
            held.save([2])
        assert caught.value.run_id == "r"
        assert not held.is_open
        run.save([3])
    assert store_state(heir) == [3]


def test_a_late_worker_cannot_write_anything(place):
    frozen, heir = place.open(), place.open()
    held = frozen.claim("r", "w")
    place.freeze(frozen)
    heir.claim("r")
    digest = heir.look("r").digest

    for late in (
        lambda: held.save([2]),
        lambda: held.finish(2),
        lambda: held.note("x"),
        lambda: held.tag(a=1),
    ):
        with pytest.raises(keepstep.ClaimLost):
            late()
    held.close()

    assert heir.look("r").digest == digest
    assert heir.verify("r").ok


def test_deaths_are_forgotten_after_a_new_checkpoint(place):
    for _ in range(2):
        dying = place.open()
        dying.claim("r", "w")
        place.kill(dying)
    heir = place.open()

    with heir.run("r") as run:
        assert run.deaths == 2
        run.save([1])
        assert run.deaths == 0


def test_a_beating_owner_keeps_its_run(place):
    holder, other = place.open(), place.open()
    run = holder.claim("r", "w")

    for _ in range(5):
        place.clock.turn(20)
        place.beat(holder)

    with pytest.raises(keepstep.RunHeld):
        other.claim("r")
    run.save([1])


def store_state(store):
    return store.load("r").state


# --- ended -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [None, {"total": 3}, "done"])
def test_a_finished_run_gives_its_result(store, result):
    with store.run("r", "w") as run:
        run.finish(result)

    with pytest.raises(keepstep.RunFinished) as caught, store.run("r", "w"):
        pass

    assert caught.value.result == result
    assert caught.value.run_id == "r"


def test_a_cancelled_run_is_not_entered(place):
    store = place.open()
    store.save("r", {}, workflow="w")
    place.append(store, "r", Cancelled())

    with pytest.raises(keepstep.RunCancelled) as caught:
        store.claim("r")

    assert caught.value.run_id == "r"


def test_a_failed_run_is_reopened(store):
    with suppress(ValueError), store.run("r", "w") as run:
        run.save([1])
        raise ValueError

    with store.run("r") as run:
        assert run.state == [1]
        assert store.look("r").status == "running"
        assert store.look("r").error is None


# --- waiting ---------------------------------------------------------------------------------------------------------


def test_a_run_that_waits_for_answers_names_its_gates(place):
    store = place.open()
    pause(place, store, Asked(gate="refund", key=KEY), Asked(gate="amount", key=b"l" * 16))

    with pytest.raises(keepstep.RunWaiting) as caught:
        store.claim("r")

    assert caught.value.gates == ("refund", "amount")
    assert caught.value.until is None
    assert store.look("r").status == "paused"
    assert store.look("r").gates == ("refund", "amount")


def test_an_answer_lets_the_run_go_on(place):
    store = place.open()
    pause(place, store, Asked(gate="refund", key=KEY))

    place.append(store, "r", Answered(gate="refund"))

    assert store.look("r").status == "ready"
    store.claim("r")


def test_a_run_that_waits_is_not_entered_by_a_new_process_either(place):
    first = place.open()
    pause(place, first, Asked(gate="refund", key=KEY))
    first.close()

    with pytest.raises(keepstep.RunWaiting):
        place.open().claim("r")


def test_a_gate_expires_when_its_time_has_come(place):
    store = place.open()
    until_us = in_seconds(place.clock, 60)
    pause(place, store, Asked(gate="refund", key=KEY, until_us=until_us))
    with pytest.raises(keepstep.RunWaiting) as caught:
        store.claim("r")
    assert caught.value.until == as_datetime(until_us)

    place.clock.turn(60)

    store.claim("r")
    assert store.look("r").gates == ()


def test_a_sleeping_run_is_entered_when_its_time_has_come(place):
    store = place.open()
    until_us = in_seconds(place.clock, 3600)
    pause(place, store, Slept(key=KEY, until_us=until_us))
    with pytest.raises(keepstep.RunWaiting) as caught:
        store.claim("r")
    assert (caught.value.gates, caught.value.until) == ((), as_datetime(until_us))
    assert store.look("r").status == "sleeping"
    assert store.look("r").until == as_datetime(until_us)

    place.clock.turn(3600)

    store.claim("r")
    assert store.look("r").until is None


def test_a_message_wakes_the_run_that_waits_for_it(place):
    store = place.open()
    pause(place, store, Slept(key=KEY, message="invoice"))
    place.append(store, "r", Sent(name="other"))
    with pytest.raises(keepstep.RunWaiting):
        store.claim("r")

    place.append(store, "r", Sent(name="invoice"))

    store.claim("r")


def test_a_run_that_waits_for_several_things_is_due_when_any_has_come(place):
    store = place.open()
    soon, late = in_seconds(place.clock, 60), in_seconds(place.clock, 600)
    pause(place, store, Asked(gate="refund", key=KEY, until_us=late), Slept(key=b"l" * 16, until_us=soon))
    with pytest.raises(keepstep.RunWaiting) as caught:
        store.claim("r")
    assert (caught.value.gates, caught.value.until) == (("refund",), as_datetime(soon))

    place.clock.turn(60)

    store.claim("r")
    assert store.look("r").gates == ("refund",)


def test_what_came_before_the_run_left_to_wait_is_not_missed(place):
    store = place.open()
    run = store.claim("r", "w")
    place.hold_write(store, run, Asked(gate="refund", key=KEY))
    place.append(store, "r", Answered(gate="refund"))

    place.leave_to_wait(store, run)

    assert store.look("r").status == "ready"


# --- a refused entry changes nothing ---------------------------------------------------------------------------------


def _held(place, store):
    place.open().claim("r", "w")


def _finished(place, store):
    with store.run("r", "w") as run:
        run.finish(1)


def _cancelled(place, store):
    store.save("r", {}, workflow="w")
    place.append(store, "r", Cancelled())


def _paused(place, store):
    pause(place, store, Asked(gate="g", key=KEY))


def _sleeping(place, store):
    pause(place, store, Slept(key=KEY, until_us=in_seconds(place.clock, 60)))


@pytest.mark.parametrize("arrange", [_held, _finished, _cancelled, _paused, _sleeping])
def test_an_entry_that_is_refused_writes_nothing(place, arrange):
    store = place.open()
    arrange(place, store)
    before = store.look("r")

    with pytest.raises(keepstep.NothingToDo):
        store.claim("r")
    with pytest.raises(keepstep.WrongWorkflow):
        store.claim("r", "another")

    assert store.look("r") == before


def test_an_entry_whose_state_cannot_be_read_gives_the_claim_back(place):
    store = place.open()
    store.save("r", {"text": "some words"}, workflow="w")
    place.damage(store, "r", store.look("r").seq)

    with pytest.raises(keepstep.Damaged):
        store.claim("r")

    assert store.runs().items[0].status == "ready"


# --- what a worker takes ---------------------------------------------------------------------------------------------


def test_due_runs_are_claimed_oldest_first(place):
    store = place.open()
    for name in ("a", "b", "c"):
        store.save(name, {"name": name}, workflow="w")
        place.clock.turn(1)

    first = store.claim_due("w", limit=2)
    second = store.claim_due("w", limit=2)

    assert [run.id for run in first] == ["a", "b"]
    assert [run.state for run in second] == [{"name": "c"}]
    assert store.claim_due("w") == []


def test_only_due_runs_of_the_workflow_are_claimed(place):
    store, other, dead = place.open(), place.open(), place.open()
    dead.claim("orphan", "w")
    place.kill(dead)
    other.claim("live", "w")
    store.save("elsewhere", {}, workflow="v")
    pause(place, store, Slept(key=KEY, until_us=in_seconds(place.clock, 60)))
    with store.run("done", "w") as run:
        run.finish()

    claimed = store.claim_due("w", limit=10)

    assert [run.id for run in claimed] == ["orphan"]
    assert claimed[0].deaths == 1
    assert other.look("live").holder.stands


def test_a_sleeper_is_claimed_when_it_is_due(place):
    store = place.open()
    pause(place, store, Slept(key=KEY, until_us=in_seconds(place.clock, 60)))
    assert store.claim_due() == []

    place.clock.turn(60)

    assert [run.id for run in store.claim_due()] == ["r"]


def test_two_workers_share_what_is_due(place):
    one, two = place.open(), place.open()
    for number in range(10):
        one.save(f"r{number}", {}, workflow="w")

    taken = [store.claim_due(limit=1)[0].id for _ in range(5) for store in (one, two)]

    assert sorted(taken) == sorted(f"r{number}" for number in range(10))
    assert one.claim_due() == two.claim_due() == []


# --- the right call in the wrong place -------------------------------------------------------------------------------


def test_a_run_that_was_left_cannot_be_written(store):
    with store.run("r", "w") as run:
        run.save([1])
    digest = store.look("r").digest

    for verb in (lambda: run.save([2]), run.finish, lambda: run.note("x"), lambda: run.tag(a=1)):
        with pytest.raises(keepstep.WrongUse, match="'r'"):
            verb()

    assert store.look("r").digest == digest
    assert run.state == [1]


def test_a_closed_store_refuses_every_verb(place):
    store = place.open()
    store.close()
    store.close()

    for verb in (*VERBS.values(), lambda store, _: store.load("r"), lambda store, _: store.runs()):
        with pytest.raises(keepstep.WrongUse, match="closed"):
            verb(store, "r")


def test_closing_a_store_releases_its_runs(place):
    store, other = place.open(), place.open()
    run = store.claim("r", "w")
    run.save([1])

    store.close()

    assert other.look("r").status == "ready"
    with pytest.raises(keepstep.KeepstepError):
        run.save([2])
    assert other.load("r").state == [1]
    run.close()


# --- ids -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", ["", None, 5, b"r", ["r"], "\ud800", "x" * 513, "é" * 257])
def test_what_is_no_id_is_refused_by_every_verb(memory_store, run_id):
    verbs = {name: verb for name, verb in VERBS.items() if name != "size"}  # whose None is the whole store
    for verb in verbs.values():
        with pytest.raises(keepstep.BadInput):
            verb(memory_store, run_id)

    for verb in (memory_store.load, memory_store.delete, memory_store.children):
        with pytest.raises(keepstep.BadInput):
            verb(run_id)


@pytest.mark.parametrize("workflow", ["", 5, b"w", "\ud800", "x" * 257])
def test_what_is_no_workflow_is_refused(memory_store, workflow):
    with pytest.raises(keepstep.BadInput, match="workflow="):
        memory_store.claim("r", workflow)
    with pytest.raises(keepstep.BadInput, match="workflow="):
        memory_store.save("r", {}, workflow=workflow)
