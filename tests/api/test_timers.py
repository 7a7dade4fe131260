"""Sleeping: the run goes on at its time, in whatever process, and finds the same deadline again."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest

import keepstep
from tests.kinds import kinds_of

HOUR = 3600.0


pytestmark = pytest.mark.usefixtures("whole_logs")


def now(clock):
    return datetime.fromtimestamp(clock.now_us() / 1e6, UTC)


def nap(run, duration="1h"):
    run.sleep(duration)
    return "rested"


# --- sleep -----------------------------------------------------------------------------------------------------------


def test_a_run_that_sleeps_leaves_its_block(store, clock):
    after = []
    with store.run("r", "w") as run:
        run.save({"n": 1})
        run.sleep("1h")
        after.append("never")

    look = store.look("r")
    assert after == []
    assert run.paused
    assert (look.status, look.holder, look.gates, look.state) == ("sleeping", None, (), {"n": 1})
    assert look.until == now(clock) + timedelta(hours=1)


def test_it_cannot_be_entered_before_its_time(store, clock):
    store.carry(nap, "r", "w")
    clock.turn(HOUR - 1)

    with pytest.raises(keepstep.RunWaiting) as caught, store.run("r"):
        pass
    assert caught.value.gates == ()
    assert caught.value.until == now(clock) + timedelta(seconds=1)
    assert store.due().items == []
    assert store.claim_due() == []
    assert store.carry(nap, "r").status == "sleeping"


def test_at_its_time_it_is_due_and_goes_on(store, clock):
    outcome = store.carry(nap, "r", "w")
    assert (outcome.status, outcome.until) == ("sleeping", now(clock) + timedelta(hours=1))
    clock.turn(HOUR)

    assert [one.run_id for one in store.due().items] == ["r"]
    [run] = store.claim_due()
    with run:
        assert nap(run) == "rested"
        run.finish()
    assert kinds_of(store).count("slept") == 1


def test_the_deadline_is_found_again_and_not_moved(store, clock):
    store.carry(nap, "r", "w")
    clock.turn(2 * HOUR)

    for _ in range(3):
        with store.run("r") as run:
            assert nap(run) == "rested"
            assert not run.paused


@pytest.mark.parametrize("end", ["kill", "freeze"])
def test_a_crash_in_between_moves_no_deadline(place, end):
    first, second = place.open(), place.open()
    begun_us = place.clock.now_us()
    run = first.claim("r", "w")
    with pytest.raises(keepstep.Pause):
        run.sleep(HOUR)
    getattr(place, end)(first)
    place.clock.turn(60)

    outcome = second.carry(nap, "r")

    assert outcome.until == datetime.fromtimestamp(begun_us / 1e6, UTC) + timedelta(hours=1)
    place.clock.turn(HOUR)
    assert second.carry(nap, "r").result == "rested"


def test_a_crash_after_waking_does_not_sleep_again(place):
    first, second = place.open(), place.open()
    first.carry(nap, "r", "w")
    place.clock.turn(HOUR)
    run = first.claim("r")
    assert nap(run) == "rested"
    place.freeze(first)

    assert second.carry(nap, "r").result == "rested"


def test_sleeps_are_numbered_in_their_order(store, clock):
    def work(run):
        for _ in range(3):
            run.sleep("1h")
        return "rested"

    begun_us = clock.now_us()
    rounds = 0
    while not (outcome := store.carry(work, "r", "w")).finished:
        rounds += 1
        clock.turn(HOUR)

    assert rounds == 3
    assert outcome.result == "rested"
    assert clock.now_us() == begun_us + 3 * HOUR * 1e6


def test_a_sleep_after_the_next_checkpoint_is_another(store, clock):
    def work(run):
        while (run.step or 0) < 3:
            run.sleep("1h")
            run.save({"n": run.step})

    for _ in range(3):
        assert store.carry(work, "r", "w").status == "sleeping"
        clock.turn(HOUR)
    assert store.carry(work, "r", "w").finished


def test_no_time_is_not_slept(store):
    with store.run("r", "w") as run:
        run.sleep(0)
        assert not run.paused
        run.finish("at once")

    assert "slept" not in kinds_of(store)


def test_in_a_sleeping_run_every_further_call_raises_the_same(store):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.Pause) as first:
            run.sleep(5)
        for call in (lambda: run.sleep(5), lambda: run.save({}), lambda: run.once(str), lambda: run.receive("m")):
            with pytest.raises(keepstep.Pause) as again:
                call()
            assert again.value is first.value

    assert store.look("r").status == "sleeping"


def test_what_was_done_before_is_not_done_again(store, clock):
    calls = []

    def work(run):
        run.once(lambda: calls.append("pay"))
        run.sleep("1d")
        run.once(lambda: calls.append("ship"))

    store.carry(work, "r", "w")
    clock.turn(24 * HOUR)

    assert store.carry(work, "r").finished
    assert calls == ["pay", "ship"]


@pytest.mark.parametrize("duration", [-1, "soon", None, "", float("nan"), float("inf"), True, "1y", 1e18], ids=repr)
def test_what_is_no_length_of_time_is_refused(store, duration):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.BadInput):
            run.sleep(duration)
        assert not run.paused

    assert store.look("r").status == "ready"


def test_a_late_worker_cannot_sleep(place):
    late, heir = place.open(), place.open()
    run = late.claim("r", "w")
    place.freeze(late)
    with heir.run("r") as successor:
        with pytest.raises(keepstep.ClaimLost):
            run.sleep(5)
        successor.finish()

    assert "slept" not in kinds_of(heir)


def test_inside_an_effect_nobody_sleeps(store):
    with store.run("r", "w") as run:

        def tool():
            for wait in (
                lambda: run.sleep(5),
                lambda: run.sleep_until(datetime.now(UTC) + timedelta(days=1)),
                lambda: run.receive("m"),
            ):
                with pytest.raises(keepstep.WrongUse, match="inside an effect"):
                    wait()
            return "done"

        assert run.once(tool) == "done"
        assert not run.paused


def test_another_run_that_a_tool_holds_may_sleep(store):
    with store.run("r", "w") as run:

        def tool():
            return store.carry(nap, "inner", "w").status

        assert run.once(tool) == "sleeping"
        assert not run.paused


# --- sleep_until -----------------------------------------------------------------------------------------------------


def test_a_run_sleeps_until_a_time(store, clock):
    until = now(clock) + timedelta(days=30, microseconds=7)

    def work(run):
        run.sleep_until(until)
        return "awake"

    outcome = store.carry(work, "r", "w")
    assert (outcome.status, outcome.until) == ("sleeping", until)
    clock.turn(30 * 24 * HOUR)
    assert store.carry(work, "r").status == "sleeping"
    clock.turn(1)

    assert store.carry(work, "r").result == "awake"


def test_a_time_that_is_reckoned_anew_each_time_is_the_one_of_the_first_time(store, clock):
    def work(run):
        run.sleep_until(now(clock) + timedelta(hours=1))
        return "awake"

    first = store.carry(work, "r", "w").until
    clock.turn(HOUR - 1)
    assert store.carry(work, "r").until == first
    clock.turn(1)

    assert store.carry(work, "r").result == "awake"


def test_several_times_are_slept_until_one_after_the_other(store, clock):
    times = [now(clock) + timedelta(hours=hours) for hours in (1, 2, 3)]
    reached = []

    def work(run):
        for time in times:
            run.sleep_until(time)
            run.once(reached.append, time)

    for _ in times:
        assert store.carry(work, "r", "w").status == "sleeping"
        clock.turn(HOUR)

    assert store.carry(work, "r").finished
    assert reached == times


def test_a_time_in_another_zone_is_the_same_time(store, clock):
    until = (now(clock) + timedelta(hours=2)).astimezone(timezone(timedelta(hours=-7)))

    assert store.carry(lambda run: run.sleep_until(until), "r", "w").until == until


def test_a_time_that_has_passed_is_not_slept_until(store, clock):
    with store.run("r", "w") as run:
        run.sleep_until(now(clock))
        run.sleep_until(datetime(1969, 1, 1, tzinfo=UTC))
        assert not run.paused


def test_the_last_time_there_is_can_be_slept_until(store):
    until = datetime.max.replace(tzinfo=UTC)

    assert store.carry(lambda run: run.sleep_until(until), "r", "w").until == until
    assert store.look("r").until == until
    assert store.claim_due() == []


class NoZone(tzinfo):
    """A zone that says nothing."""

    def utcoffset(self, when):
        return None


@pytest.mark.parametrize(
    "moment",
    [datetime(2030, 1, 1), datetime(2030, 1, 1, tzinfo=NoZone()), None, "2030-01-01", 1_900_000_000,  # noqa: DTZ001
     datetime(2030, 1, 1, tzinfo=UTC).date(), timedelta(1)],
    ids=repr,
)  # fmt: skip
def test_what_is_no_time_with_a_zone_is_refused(store, moment):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.BadInput, match="zone"):
            run.sleep_until(moment)
        assert not run.paused

    assert store.look("r").status == "ready"


# --- several things at once ------------------------------------------------------------------------------------------


def several(run):
    """What a run does that waits for a person, a message and a time at once."""

    def receive():
        try:
            return run.receive("m", timeout="3h")
        except keepstep.TimedOut:
            return "timed out"

    return run.gather(lambda: run.ask("Go on?", expires="4h"), receive, lambda: nap(run, "2h"))


def test_a_run_that_waits_for_several_things_is_due_at_the_first_of_their_times(store, clock):
    outcome = store.carry(several, "r", "w")

    assert (outcome.status, len(outcome.gates)) == ("paused", 1)
    assert outcome.until == now(clock) + timedelta(hours=2)
    with pytest.raises(keepstep.RunWaiting) as caught, store.run("r"):
        pass
    assert (caught.value.gates, caught.value.until) == (outcome.gates, outcome.until)


def test_when_its_time_has_come_it_finds_the_others_as_they_were(store, clock):
    begun = now(clock)
    first = store.carry(several, "r", "w")
    clock.turn(2 * HOUR)
    assert [one.run_id for one in store.due().items] == ["r"]
    [run] = store.claim_due()
    with run:
        several(run)

    look = store.look("r")
    assert (look.status, look.gates) == ("paused", first.gates)
    assert look.until == begun + timedelta(hours=3)
    store.answer(first.gates[0], "yes")
    clock.turn(HOUR)
    assert store.carry(several, "r").result == ["yes", "timed out", "rested"]


def test_a_message_wakes_it_and_it_finds_the_others_as_they_were(store, clock):
    begun = now(clock)
    first = store.carry(several, "r", "w")
    clock.turn(60)
    store.send("r", "m", "hello")
    assert store.look("r").status == "ready"

    outcome = store.carry(several, "r")

    assert (outcome.status, outcome.gates) == ("paused", first.gates)
    assert outcome.until == begun + timedelta(hours=2)
    clock.turn(2 * HOUR)
    store.answer(first.gates[0], "yes")
    assert store.carry(several, "r").result == ["yes", "hello", "rested"]


def test_an_answer_wakes_it_and_it_finds_the_others_as_they_were(store, clock):
    begun = now(clock)
    first = store.carry(several, "r", "w")
    clock.turn(60)
    store.answer(first.gates[0], "yes")

    outcome = store.carry(several, "r")

    assert (outcome.status, outcome.gates) == ("sleeping", ())
    assert outcome.until == begun + timedelta(hours=2)
    store.send("r", "m", "hello")
    clock.turn(2 * HOUR)
    assert store.carry(several, "r").result == ["yes", "hello", "rested"]
    assert (kinds_of(store).count("asked"), kinds_of(store).count("took")) == (1, 1)


def test_a_gate_whose_time_comes_with_that_of_a_sleep_expires(store, clock):
    def work(run):
        return run.gather(lambda: run.ask("Go on?", expires="1h", default="late"), lambda: nap(run))

    store.carry(work, "r", "w")
    clock.turn(HOUR)

    assert store.carry(work, "r").result == ["late", "rested"]
    assert kinds_of(store).count("expired") == 1


@pytest.mark.parametrize("end", ["kill", "freeze"])
def test_a_crash_while_it_waits_for_several_things_moves_none_of_them(place, end):
    first, second = place.open(), place.open()
    begun = now(place.clock)
    gates = first.carry(several, "r", "w").gates
    second.send("r", "m", "hello")
    run = first.claim("r")
    with pytest.raises(keepstep.Pause):
        several(run)
    getattr(place, end)(first)

    outcome = second.carry(several, "r")

    assert (outcome.gates, outcome.until) == (gates, begun + timedelta(hours=2))
    second.answer(gates[0], "yes")
    place.clock.turn(2 * HOUR)
    assert second.carry(several, "r").result == ["yes", "hello", "rested"]
