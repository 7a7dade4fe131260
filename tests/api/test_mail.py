"""Messages for a run: kept until it receives them, in order, each once."""

import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

import keepstep
from keepstep.log.records import Sent
from tests.kinds import kinds_of

HOUR = 3600.0


pytestmark = pytest.mark.usefixtures("whole_logs")


def now(clock):
    return datetime.fromtimestamp(clock.now_us() / 1e6, UTC)


def receiving(*names, **how):
    """What a run does: it receives these, one after the other."""
    return lambda run: [run.receive(name, **how) for name in names]


# --- before and after ------------------------------------------------------------------------------------------------


def test_a_message_that_came_before_is_there_at_once(store):
    store.save("r", {}, workflow="w")
    assert store.send("r", "paid", {"amount": 420})

    assert store.carry(receiving("paid"), "r").result == [{"amount": 420}]
    assert "slept" not in kinds_of(store)


def test_a_run_that_waits_for_a_message_sleeps_until_it_comes(store):
    after = []
    with store.run("r", "w") as run:
        run.receive("paid")
        after.append("never")
    look = store.look("r")
    assert (after, run.paused) == ([], True)
    assert (look.status, look.holder, look.until) == ("sleeping", None, None)

    store.send("r", "paid", 5)

    assert store.look("r").status == "ready"
    assert [one.run_id for one in store.due().items] == ["r"]
    [run] = store.claim_due()
    with run:
        assert run.receive("paid") == 5


def test_before_it_comes_the_run_cannot_be_entered(store, clock):
    store.carry(receiving("paid"), "r", "w")
    clock.turn(1000 * HOUR)

    with pytest.raises(keepstep.RunWaiting) as caught, store.run("r"):
        pass
    assert (caught.value.gates, caught.value.until) == ((), None)
    assert store.due().items == []
    assert store.claim_due() == []


def test_a_message_that_comes_while_the_run_is_held_is_received(place):
    worker, other = place.open(), place.open()
    with worker.run("r", "w") as run:
        run.save({})
        other.send("r", "paid", 5)
        assert run.receive("paid") == 5
        run.finish()


def test_a_message_that_comes_before_the_run_has_left_makes_it_ready(place):
    worker, other = place.open(), place.open()
    run = worker.claim("r", "w")
    with pytest.raises(keepstep.Pause):
        run.receive("paid")
    other.send("r", "paid", 5)
    run.close()

    assert worker.look("r").status == "ready"
    assert worker.carry(receiving("paid"), "r").result == [5]


@pytest.mark.parametrize(
    "value", [None, 0, "", b"\0", [1, {"a": (2, 3)}], {1, 2}, "x" * 100_000], ids=lambda v: repr(v)[:20]
)
def test_a_message_comes_as_it_was_sent(store, value):
    store.save("r", {}, workflow="w")
    store.send("r", "m", value)

    assert store.carry(receiving("m"), "r").result == [value]


def test_a_message_may_be_empty(store):
    store.save("r", {}, workflow="w")
    store.send("r", "m")

    assert store.carry(receiving("m"), "r").result == [None]


# --- in order, each once ---------------------------------------------------------------------------------------------


def test_messages_come_in_the_order_of_sending_each_once(store):
    store.save("r", {}, workflow="w")
    for number in range(4):
        store.send("r", "m", number)

    outcome = store.carry(receiving(*["m"] * 5), "r")
    assert outcome.status == "sleeping"
    store.send("r", "m", 4)

    assert store.carry(receiving(*["m"] * 5), "r").result == [0, 1, 2, 3, 4]


def test_whoever_resumes_gets_the_same_messages(store):
    store.save("r", {}, workflow="w")
    for number in range(4):
        store.send("r", "m", number)

    for _ in range(3):
        with store.run("r") as run:
            assert receiving("m", "m")(run) == [0, 1]
    with store.run("r") as run:
        assert receiving("m", "m")(run) == [0, 1]
        run.save({})
        assert receiving("m", "m")(run) == [2, 3]


def test_two_names_do_not_disturb_each_other(store):
    store.save("r", {}, workflow="w")
    store.send("r", "a", "a 1")
    assert store.carry(receiving("b"), "r").status == "sleeping"
    store.send("r", "a", "a 2")
    assert store.look("r").status == "sleeping"
    store.send("r", "b", "b 1")

    assert store.carry(receiving("b", "a", "a"), "r").result == ["b 1", "a 1", "a 2"]


def test_two_runs_do_not_disturb_each_other(store):
    for run_id in ("r", "s"):
        store.carry(receiving("m"), run_id, "w")
    store.send("s", "m", "for s")

    assert store.look("r").status == "sleeping"
    assert store.carry(receiving("m"), "s").result == ["for s"]


def test_in_a_gather_each_branch_receives_its_own(store):
    def work(run):
        return run.gather(*(lambda: run.receive("m") for _ in range(3)))

    store.carry(work, "r", "w")
    for number in range(3):
        store.send("r", "m", number)

    assert sorted(store.carry(work, "r").result) == [0, 1, 2]
    assert kinds_of(store).count("took") == 3


def test_a_branch_that_has_received_keeps_its_message_while_the_other_waits(store):
    def work(run):
        return run.gather(lambda: run.receive("a"), lambda: run.receive("b"))

    store.carry(work, "r", "w")
    store.send("r", "a", 1)
    assert store.carry(work, "r").status == "sleeping"
    store.send("r", "a", 2)
    assert store.look("r").status == "sleeping"
    store.send("r", "b", 3)

    assert store.carry(work, "r").result == [1, 3]


# --- crashes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["kill", "freeze"])
def test_messages_are_kept_over_a_crash(place, end):
    first, second = place.open(), place.open()
    run = first.claim("r", "w")
    run.save({})
    for number in range(3):
        second.send("r", "m", number)
    assert run.receive("m") == 0
    getattr(place, end)(first)

    assert second.carry(receiving("m", "m", "m"), "r").result == [0, 1, 2]


@pytest.mark.parametrize("end", ["kill", "freeze"])
def test_a_crash_before_the_run_has_left_loses_no_message(place, end):
    first, second = place.open(), place.open()
    run = first.claim("r", "w")
    with pytest.raises(keepstep.Pause):
        run.receive("m")
    second.send("r", "m", 5)
    getattr(place, end)(first)

    assert second.carry(receiving("m"), "r").result == [5]


def test_a_late_worker_takes_no_message(place):
    late, heir = place.open(), place.open()
    run = late.claim("r", "w")
    run.save({})
    heir.send("r", "m", 5)
    place.freeze(late)
    with heir.run("r") as successor:
        with pytest.raises(keepstep.ClaimLost):
            run.receive("m")
        assert successor.receive("m") == 5
        successor.finish()


def test_a_failed_run_keeps_its_messages(store):
    with pytest.raises(ValueError, match="broken"), store.run("r", "w"):
        raise ValueError("broken")
    store.send("r", "m", 5)

    assert store.look("r").status == "failed"
    assert store.carry(receiving("m"), "r").result == [5]


# --- sent again ------------------------------------------------------------------------------------------------------


def test_a_message_with_an_id_is_sent_once(place):
    store, other = place.open(), place.open()
    store.save("r", {}, workflow="w")

    assert store.send("r", "m", 1, id="m-1") is True
    assert other.send("r", "m", 2, id="m-1") is False
    assert store.send("r", "m", 3, id="m-2") is True

    assert store.carry(receiving("m", "m"), "r").result == [1, 3]


def test_an_id_is_known_after_the_message_was_received(store):
    store.save("r", {}, workflow="w")
    store.send("r", "m", 1, id="m-1")
    with store.run("r") as run:
        run.receive("m")
    assert store.send("r", "m", 1, id="m-1") is False
    with store.run("r") as run:
        run.receive("m")
        run.finish()

    assert store.send("r", "m", 1, id="m-1") is False
    assert kinds_of(store).count("sent") == 1


def test_an_id_is_of_one_run_and_of_one_life(store):
    for run_id in ("r", "s"):
        store.save(run_id, {}, workflow="w")
        assert store.send(run_id, "m", id="m-1")
    store.delete("r")
    store.save("r", {}, workflow="w")

    assert store.send("r", "m", "anew", id="m-1")
    assert store.carry(receiving("m"), "r").result == ["anew"]


def test_without_an_id_equal_messages_are_several(store):
    store.save("r", {}, workflow="w")
    assert [store.send("r", "m", 1) for _ in range(2)] == [True, True]

    assert store.carry(receiving("m", "m"), "r").result == [1, 1]


def test_an_id_of_a_message_is_no_key_of_an_effect(store):
    store.save("r", {}, workflow="w")
    with store.run("r") as run:
        run.using(key="k").once(str)
    assert store.send("r", "k", id="k")
    assert [one.key for one in store.effects("r")] == ["k"]
    with pytest.raises(keepstep.NotInDoubt):
        store.settle("r", "k", happened=True)


def test_a_message_with_an_id_reaches_a_run_that_is_held(place):
    worker, other = place.open(), place.open()
    with worker.run("r", "w") as run:
        for number in range(5):
            run.save({"n": number})
            assert other.send("r", "m", number, id=f"m-{number}")
            assert not other.send("r", "m", number, id=f"m-{number}")
        assert receiving(*["m"] * 5)(run) == [0, 1, 2, 3, 4]


# --- in time ---------------------------------------------------------------------------------------------------------


def test_a_message_that_does_not_come_in_time_is_told(store, clock):
    outcome = store.carry(receiving("m", timeout="1h"), "r", "w")
    assert (outcome.status, outcome.until) == ("sleeping", now(clock) + timedelta(hours=1))
    clock.turn(HOUR - 1)
    with pytest.raises(keepstep.RunWaiting), store.run("r"):
        pass
    clock.turn(1)
    assert [one.run_id for one in store.due().items] == ["r"]

    with pytest.raises(keepstep.TimedOut) as caught, store.run("r") as run:
        run.receive("m", timeout="1h")
    assert (caught.value.run_id, caught.value.name) == ("r", "m")


def test_who_was_told_that_it_timed_out_is_told_so_again(store, clock):
    store.carry(receiving("m", timeout="1h"), "r", "w")
    clock.turn(HOUR)

    for _ in range(3):
        with store.run("r") as run, pytest.raises(keepstep.TimedOut):
            run.receive("m", timeout="1h")
        store.send("r", "m", "too late")
    with store.run("r") as run:
        with pytest.raises(keepstep.TimedOut):
            run.receive("m", timeout="1h")
        assert run.receive("m", timeout="1h") == "too late"


def test_a_message_in_time_is_received_however_late_the_run_goes_on(store, clock):
    store.carry(receiving("m", timeout="1h"), "r", "w")
    store.send("r", "m", 5)
    clock.turn(2 * HOUR)

    assert store.carry(receiving("m", timeout="1h"), "r").result == [5]


def test_a_message_after_the_deadline_that_nobody_noticed_is_received(store, clock):
    store.carry(receiving("m", timeout="1h"), "r", "w")
    clock.turn(2 * HOUR)
    store.send("r", "m", 5)

    assert store.carry(receiving("m", timeout="1h"), "r").result == [5]


def test_the_deadline_stands_when_it_is_met_again(place):
    first, second = place.open(), place.open()
    begun = now(place.clock)
    run = first.claim("r", "w")
    with pytest.raises(keepstep.Pause):
        run.receive("m", timeout="1h")
    place.freeze(first)

    outcome = second.carry(receiving("m", timeout="1h"), "r")

    assert outcome.until == begun + timedelta(hours=1)
    place.clock.turn(HOUR)
    assert isinstance(second.carry(receiving("m", timeout="1h"), "r").error, keepstep.TimedOut)


def test_no_time_to_wait_looks_only(store):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.TimedOut):
            run.receive("m", timeout=0)
        store.send("r", "m", 5)
        assert run.receive("m", timeout=0) == 5
        assert not run.paused


def test_a_loop_that_waits_in_pieces_goes_on_where_it_was(store, clock):
    tried = []

    def work(run):
        for number in range(10):
            try:
                return number, run.receive("m", timeout="1h")
            except keepstep.TimedOut:
                run.once(tried.append, number)
        return None

    for _ in range(3):
        assert store.carry(work, "r", "w").status == "sleeping"
        clock.turn(HOUR)
    store.carry(work, "r")
    store.send("r", "m", "at last")

    assert store.carry(work, "r").result == (3, "at last")
    assert tried == [0, 1, 2]


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_run_takes_so_many_messages_and_no_more(place):
    store = place.open()
    store.save("r", {}, workflow="w")
    place.append(store, "r", *[Sent(name="m")] * 999)
    store.send("r", "n", "the last", id="m-1000")

    for how in ({}, {"id": "m-1001"}):
        with pytest.raises(keepstep.TooLarge, match="1000"):
            store.send("r", "m", **how)
    assert store.send("r", "n", "the last", id="m-1000") is False
    with store.run("r") as run:
        assert run.receive("n") == "the last"
    assert store.send("r", "m", id="m-1001")


def test_a_run_that_has_ended_or_is_not_there_takes_no_message(store):
    with store.run("r", "w") as run:
        run.finish()

    for how in ({}, {"id": "m-1"}):
        with pytest.raises(keepstep.NotAllowed):
            store.send("r", "m", **how)
        with pytest.raises(keepstep.NoSuchRun):
            store.send("unknown", "m", **how)
    assert "sent" not in kinds_of(store)
    store.delete("r")
    with pytest.raises(keepstep.NoSuchRun):
        store.send("r", "m")


@pytest.mark.parametrize("name", ["", None, 5, b"m", "\ud800", "m" * 300], ids=lambda name: repr(name)[:12])
def test_what_is_no_name_is_refused(store, name):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.BadInput):
            store.send("r", name)
        with pytest.raises(keepstep.BadInput):
            run.receive(name)
        assert not run.paused

    assert kinds_of(store) == ["opened", "claimed", "released"]


@pytest.mark.parametrize("message_id", ["", 5, b"m", "\ud800", "m" * 300], ids=lambda name: repr(name)[:12])
def test_what_is_no_id_is_refused(store, message_id):
    store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.BadInput):
        store.send("r", "m", id=message_id)
    assert kinds_of(store) == ["opened", "saved"]


@pytest.mark.parametrize("timeout", [-1, "soon", float("nan"), True], ids=repr)
def test_what_is_no_time_to_wait_is_refused(store, timeout):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.BadInput):
            run.receive("m", timeout=timeout)
        assert not run.paused


def test_what_cannot_be_stored_is_not_sent(store):
    store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.CannotStore):
        store.send("r", "m", object())
    assert store.carry(receiving("m"), "r").status == "sleeping"


def test_a_message_for_nobody_does_not_keep_a_run_from_its_end(store):
    store.save("r", {}, workflow="w")
    store.send("r", "m", 5)

    assert store.carry(lambda run: "done", "r").finished


# --- any order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_in_any_order_of_sending_and_crashes_every_message_is_received_once_and_in_order(place, seed):
    chance = random.Random(seed)
    stores = [place.open(), place.open()]
    names = [chance.choice("ab") for _ in range(12)]
    stores[0].save("r", {}, workflow="w")
    sent = {"a": 0, "b": 0}

    def work(run):
        return [(name, run.receive(name)) for name in names]

    def crash():
        run = stores[0].claim("r")
        with suppress(keepstep.Pause):
            work(run)
        getattr(place, chance.choice(["kill", "freeze"]))(stores.pop(0))
        stores.append(place.open())

    def send(name):
        store = chance.choice(stores)
        assert store.send("r", name, sent[name], id=f"{name} {sent[name]}")
        assert not store.send("r", name, "again", id=f"{name} {sent[name]}")
        sent[name] += 1

    result = None
    for _ in range(300):
        deed = chance.choice(["send", "send", "carry", "crash"])
        with suppress(keepstep.RunWaiting):
            if deed == "send":
                send(chance.choice("ab"))
            elif deed == "crash":
                crash()
            elif (outcome := stores[0].carry(work, "r")).finished:
                result = outcome.result
                break

    counts = {"a": 0, "b": 0}
    expected = []
    for name in names:
        expected.append((name, counts[name]))
        counts[name] += 1
    assert result == expected
