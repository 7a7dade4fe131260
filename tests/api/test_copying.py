"""Moving runs from one store into another: the same logs, nobody's in two places, and safe to repeat."""

from contextlib import suppress
from itertools import product

import pytest

import keepstep
from keepstep.api.places import store_for
from keepstep.runtime.inline import drive
from keepstep.testing import Clock
from keepstep.testing.faults import FaultyStore, SimulatedCrash
from tests.places import LEASE_SECONDS, Place

KINDS = ("memory", "dir", "sqlite")
PAIRS = [*product(KINDS, KINDS), ("sqlite", "postgres"), ("postgres", "postgres")]


@pytest.fixture(params=PAIRS, ids="-to-".join)
def places(request, folder):
    """Two places with one clock, of every pair of kinds."""
    clock, made = Clock(), []
    for name, kind in zip(("here", "there"), request.param, strict=True):
        (folder / name).mkdir()
        made.append(Place(kind, "sync", folder / name))
        made[-1].clock = clock
    yield made
    for one in made:
        one.close()


@pytest.fixture
def here(places):
    return places[0].open()


@pytest.fixture
def there(places):
    return places[1].open()


def log_of(store, run_id):
    """Everything that is stored of a run's log."""
    return drive(store._session.engine.store.records(run_id))


def pay(who):
    return f"paid {who}"


def fill(store):
    """Runs in every status but running."""
    with store.run("ready", "w") as run:
        run.save({"n": 1}, label="first")
        run.using(key="k").once(pay, "ada")
        run.save({"n": 2}, next="go on")
    with store.run("paused", "w") as run:
        run.save({"n": 1})
        run.ask("Go on?", expires="2h", default="no")
    with store.run("sleeping", "w") as run:
        run.sleep("1h")
    with store.run("finished", "w") as run:
        run.tag(who="ada")
        run.finish({"done": True})
    with suppress(ValueError), store.run("failed", "w"):
        raise ValueError("broken")
    store.save("cancelled", {"n": 1}, workflow="w")
    store.cancel("cancelled", reason="enough")
    store.fork("ready", at=1, id="fork")
    store.save("deleted", {}, workflow="w")
    store.delete("deleted")
    store.save("deleted", {"again": True}, workflow="w")
    store.send("ready", "paid", 5, id="m-1")


STATUSES = {
    "ready": "ready", "paused": "paused", "sleeping": "sleeping", "finished": "finished", "failed": "failed",
    "cancelled": "cancelled", "fork": "ready", "deleted": "ready",
}  # fmt: skip


def test_every_run_is_moved_with_its_log_as_it_was(here, there):
    fill(here)
    before = {run_id: (log_of(here, run_id), here.look(run_id)) for run_id in STATUSES}

    report = keepstep.copy(here, there)

    assert (report.copied, report.there, report.left) == (len(STATUSES), 0, [])
    assert report.records == sum(len(log) for log, _ in before.values())
    for run_id, (log, look) in before.items():
        assert log_of(there, run_id) == log
        assert there.look(run_id) == look
        assert there.verify(run_id, expect=look.digest).ok
    assert {one.run_id: one.status for one in there.runs(limit=100).items} == STATUSES


def test_nobody_goes_on_in_the_source_with_a_run_that_was_moved(here, there):
    fill(here)

    keepstep.copy(here, there)

    assert {one.run_id: one.status for one in here.runs(limit=100).items} == {
        **dict.fromkeys(STATUSES, "cancelled"),
        "finished": "finished",
    }
    assert here.due().items == []
    assert here.inbox().items == []
    with pytest.raises(keepstep.RunCancelled, match="moved to") as caught:
        here.claim("ready")
    assert there.url in caught.value.reason
    assert caught.value.by == "keepstep.copy"
    assert here.look("finished").result == {"done": True}
    assert all(here.verify(run_id).ok for run_id in STATUSES)


def test_a_run_goes_on_where_it_was_moved_to(here, there):
    fill(here)
    keepstep.copy(here, there)

    with there.run("ready") as run:
        assert (run.state, run.next) == ({"n": 2}, "go on")
        assert run.using(key="k").once(pay, "ada") == "paid ada"
        assert run.receive("paid") == 5
        run.save({"n": 3})
    assert there.send("ready", "paid", 5, id="m-1") is False
    assert there.at("ready", label="first").state == {"n": 1}
    there.answer(there.inbox().items[0].id, "yes")
    with there.run("paused") as run:
        assert run.ask("Go on?", expires="2h", default="no") == "yes"
    with pytest.raises(keepstep.RunWaiting):
        there.claim("sleeping")


def test_a_sleeper_wakes_at_its_time(places, here, there):
    fill(here)
    keepstep.copy(here, there)
    places[1].clock.turn(3700)

    assert "sleeping" in {one.run_id for one in there.due().items}


def test_a_copy_can_be_repeated(here, there):
    fill(here)
    keepstep.copy(here, there)
    with there.run("ready") as run:
        run.save({"n": 3})
    logs = {run_id: (log_of(here, run_id), log_of(there, run_id)) for run_id in STATUSES}

    report = keepstep.copy(here, there)

    assert (report.copied, report.there, report.records, report.left) == (0, len(STATUSES), 0, [])
    assert {run_id: (log_of(here, run_id), log_of(there, run_id)) for run_id in STATUSES} == logs


def test_what_was_written_to_an_ended_run_since_is_copied_after_it(here, there):
    fill(here)
    keepstep.copy(here, there)
    here.tag("finished", late=True)

    report = keepstep.copy(here, there, runs=["finished"])

    assert (report.copied, report.left) == (1, [])
    assert there.look("finished").tags == {"who": "ada", "late": True}
    assert there.verify("finished").ok


def test_a_held_run_stays_until_it_is_free(places, here, there):
    other = places[0].open()
    run = other.claim("r", "w")
    run.save({"n": 1})
    seen = []

    report = keepstep.copy(here, there)
    assert [(one.run_id, one.outcome) for one in report.left] == [("r", "held")]
    assert there.runs().items == []

    def let_go(seconds):
        run.close()
        places[0].clock.turn(seconds)

    places[0].clock.sleep = let_go
    report = keepstep.copy(here, there, wait="1m", progress=seen.append)

    assert (report.copied, report.left) == (1, [])
    assert [(one.run_id, one.outcome) for one in seen] == [("r", "copied")]
    assert there.load("r").state == {"n": 1}


def test_the_claim_of_a_dead_owner_is_released(places, here, there):
    dead = places[0].open()
    run = dead.claim("r", "w")
    run.save({"n": 1})
    places[0].kill(dead)
    places[0].clock.turn(LEASE_SECONDS + 1)

    assert keepstep.copy(here, there).copied == 1

    assert there.look("r").status == "ready"
    with there.run("r") as run:
        run.save({"n": 2})
    assert there.verify("r").ok


def test_an_effect_in_doubt_is_in_doubt_where_it_was_moved_to(places, here, there):
    class Cut(BaseException):
        pass

    def die(who):
        raise Cut

    with suppress(Cut), here.run("r", "w") as run:
        run.using(key="k").once(die, "ada")
    keepstep.copy(here, there)

    with there.run("r") as run:
        run.using(key="k").once(die, "ada")
    assert [one.about for one in there.inbox().items] == ["doubt"]


def test_another_run_of_the_same_id_is_left_alone(here, there):
    here.save("r", {"n": "here"}, workflow="w")
    there.save("r", {"n": "there"}, workflow="w")

    report = keepstep.copy(here, there)

    assert [(one.run_id, one.outcome) for one in report.left] == [("r", "refused")]
    assert "another run" in str(report.left[0].why)
    assert (here.look("r").status, here.load("r").state) == ("ready", {"n": "here"})
    assert there.load("r").state == {"n": "there"}


def test_a_run_that_was_deleted_where_it_goes_does_not_come_back(here, there):
    here.save("r", {"n": 1}, workflow="w")
    keepstep.copy(here, there)
    there.delete("r")

    report = keepstep.copy(here, there)

    assert [one.outcome for one in report.left] == ["refused"]
    assert there.load("r") is None


def test_a_run_that_was_moved_goes_nowhere_else_from_here(here, there):
    here.save("r", {"n": 1}, workflow="w")
    keepstep.copy(here, there)

    with keepstep.open("memory:", clock=Clock()) as third:
        report = keepstep.copy(here, third)

    assert [one.outcome for one in report.left] == ["refused"]
    assert f"moved to {there.url}" in str(report.left[0].why)


def test_a_run_whose_rollback_was_cut_off_stays(here, there):
    def fail(done):
        raise TimeoutError

    with here.run("r", "w") as run:
        run.save({"n": 1})
        run.using(key="k").once(pay, "ada")
    with suppress(keepstep.UndoFailed):
        here.rollback("r", 1, undo={"pay": fail})

    assert [one.outcome for one in keepstep.copy(here, there).left] == ["refused"]
    here.rollback("r", 1, undone=["k"])
    assert keepstep.copy(here, there).copied == 1


def test_only_the_runs_that_were_named_are_moved(here, there):
    fill(here)

    report = keepstep.copy(here, there, runs=["ready", "unknown"])

    assert report.copied == 1
    assert [(one.run_id, one.outcome) for one in report.left] == [("unknown", "refused")]
    assert [one.run_id for one in there.runs().items] == ["ready"]


def test_a_long_log_is_moved_whole(here, there):
    with here.run("r", "w") as run:
        for number in range(700):
            run.save({"n": number, "log": ["line"] * (number % 50)})

    assert keepstep.copy(here, there).copied == 1

    assert there.at("r", step=350).state == {"n": 349, "log": ["line"] * 49}
    assert there.verify("r").ok


@pytest.mark.parametrize("side", [0, 1], ids=["source", "target"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["fail", "crash"])
@pytest.mark.parametrize("places", [("memory", "memory"), ("sqlite", "dir"), ("dir", "sqlite")], indirect=True)
def test_cut_off_at_any_operation_it_goes_on_when_it_is_called_again(places, side, when, how):
    for at in range(1, 200):
        run_id = f"run {at}"
        watchers = [place.open() for place in places]
        with watchers[0].run(run_id, "w") as run:
            run.save({"n": 1})
            run.ask("Go on?")
        digest = watchers[0].look(run_id).digest
        stores = list(watchers)
        place = places[side]
        faulty = FaultyStore(store_for(place.url, place.clock, read_only=False), at, when, how)
        stores[side] = keepstep.open(faulty, clock=place.clock)
        with suppress(keepstep.KeepstepError, SimulatedCrash):
            keepstep.copy(*stores, runs=[run_id])
        drive(faulty.store.close())
        live = [one for one in watchers if run_id in statuses(one) and statuses(one)[run_id] == "paused"]
        assert len(live) <= 1, "the run is alive in two stores"

        report = keepstep.copy(*watchers, runs=[run_id])

        assert report.left == []
        assert watchers[1].look(run_id).digest == digest
        assert statuses(watchers[1])[run_id] == "paused"
        assert statuses(watchers[0])[run_id] == "cancelled"
        if faulty.operations < at:
            return
    raise AssertionError("the copy never came to its end without a fault")


def statuses(store):
    return {one.run_id: one.status for one in store.runs(limit=1000).items}


# --- bad input -------------------------------------------------------------------------------------------------------


def test_a_store_is_not_copied_into_itself(places, here):
    with pytest.raises(keepstep.BadInput, match="same store"):
        keepstep.copy(here, places[0].open())


@pytest.mark.parametrize(
    "bad",
    [{"runs": "r"}, {"runs": 5}, {"runs": [""]}, {"wait": "soon"}, {"progress": 5}],
    ids=lambda bad: next(iter(bad)),
)
def test_arguments_that_make_no_sense_are_refused(here, there, bad):
    here.save("r", {}, workflow="w")
    with pytest.raises(keepstep.BadInput):
        keepstep.copy(here, there, **bad)
    assert here.look("r").status == "ready"


def test_a_store_that_cannot_be_written_is_refused(folder):
    with keepstep.open(folder / "a.db") as store:
        store.save("r", {}, workflow="w")
    with keepstep.open(folder / "a.db", read_only=True) as source, pytest.raises(keepstep.BadInput, match="read-only"):
        keepstep.copy(source, folder / "b.db")


def test_places_can_be_named_by_their_urls(folder):
    with keepstep.open(folder / "a.db") as store:
        store.save("r", {"n": 1}, workflow="w")

    assert keepstep.copy(str(folder / "a.db"), f"dir:{folder}/b").copied == 1

    with keepstep.open(f"dir:{folder}/b") as store:
        assert store.load("r").state == {"n": 1}
