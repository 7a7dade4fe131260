"""An owner: known to the store once, kept alive by one thread, and gone in good order."""

from __future__ import annotations

import threading

import pytest

import keepstep
from keepstep.errors import RunHeld, StoreFailed
from keepstep.runtime.inline import drive
from keepstep.store.base import Renewal
from tests.engine.hooked_store import PATIENCE_SECONDS, HookedStore, Work
from tests.places import LEASE_SECONDS, Place

Store = keepstep.Store


def next_beat(place: Place, hooked: HookedStore) -> Renewal:
    """Turn the clock until the heart has beaten once more."""
    with hooked.renewed:
        before = len(hooked.renewals)
        for _ in range(int(PATIENCE_SECONDS / 0.1)):
            place.clock.turn(LEASE_SECONDS / 3)
            if hooked.renewed.wait_for(lambda: len(hooked.renewals) > before, 0.1):
                return hooked.renewals[-1]
    raise AssertionError("the heart does not beat")


def hearts() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "keepstep heartbeat"]


def test_who_never_claims_is_no_owner(hooked: HookedStore, holder: Store):
    before = hearts()
    holder.save("r", {"n": 1}, workflow="w")
    holder.tag("r", a=1)
    assert holder.look("r").holder is None
    assert (hooked.enlisted, hearts()) == ([], before)


def test_an_owner_is_enlisted_once_however_many_runs_it_holds(hooked: HookedStore, holder: Store):
    before = len(hearts())
    runs = [holder.claim(f"r-{number}", "w") for number in range(5)]
    assert len(hooked.enlisted) == 1
    assert len(hearts()) == before + 1
    assert {holder.look(run.id).holder.owner for run in runs} == set(hooked.enlisted)  # pyright: ignore[reportOptionalMemberAccess]


def test_an_owner_is_enlisted_once_under_many_threads(hooked: HookedStore, holder: Store):
    before = len(hearts())
    work = Work()
    work.start(*[lambda number=number: holder.claim(f"r-{number}", "w").epoch for number in range(20)])
    assert work.ended() == [1] * 20
    assert len(hooked.enlisted) == 1
    assert len(hearts()) == before + 1


def test_every_open_store_is_an_owner_of_its_own(place: Place, holder: Store, other: Store):
    mine, theirs = holder.claim("mine", "w"), other.claim("theirs", "w")
    with pytest.raises(RunHeld) as caught:
        other.claim("mine")
    assert caught.value.owner == holder.look("mine").holder.owner  # pyright: ignore[reportOptionalMemberAccess]
    assert caught.value.owner != other.look("theirs").holder.owner  # pyright: ignore[reportOptionalMemberAccess]
    mine.close()
    theirs.close()


def test_a_failed_enlisting_claims_nothing_and_is_tried_again(hooked: HookedStore, holder: Store, place: Place):
    before = len(hearts())
    hooked.at, hooked.how = hooked.operations + 1, "fail"
    with pytest.raises(StoreFailed):
        holder.claim("r", "w")
    assert len(hearts()) == before
    with holder.run("r", "w") as run:
        assert run.epoch == 1
    assert len(hooked.enlisted) == 2


def test_a_heart_keeps_its_runs_however_much_time_passes(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    with holder.run("r", "w") as run:
        start_us = place.clock.now_us()
        for _ in range(10):
            assert next_beat(place, hooked).stands
            with pytest.raises(RunHeld):
                other.claim("r")
        assert place.clock.now_us() - start_us > 3 * LEASE_SECONDS * 1e6
        assert other.due().items == []
        assert run.save({"n": 1}) == 1
    assert other.look("r").epoch == 1


def test_a_heartbeat_knows_of_every_run_that_is_held(place: Place, hooked: HookedStore, holder: Store, other: Store):
    runs = [holder.claim(f"r-{number}", "w") for number in range(3)]
    runs[0].save({"n": 1})
    theirs = other.claim("theirs", "w")
    renewal = next_beat(place, hooked)
    assert renewal.held == {"r-0": (3, 1), "r-1": (2, 1), "r-2": (2, 1)}
    theirs.close()


@pytest.mark.parametrize("error", [StoreFailed("gone"), OSError("gone"), RuntimeError("gone")])
def test_a_heart_beats_on_after_the_store_could_not_be_reached(
    place: Place, hooked: HookedStore, holder: Store, error: Exception
):
    renew = hooked.store.renew
    failures = [error, error]

    async def unreachable(owner: str, seconds: float) -> Renewal:
        if failures:
            raise failures.pop()
        return await renew(owner, seconds)

    with holder.run("r", "w"):
        hooked.store.renew = unreachable
        assert next_beat(place, hooked).stands
        assert failures == []


def test_an_owner_whose_lease_was_taken_away_enlists_again(place: Place, hooked: HookedStore, holder: Store):
    with holder.run("r", "w"):
        [owner] = hooked.enlisted
        drive(hooked.store.retire(owner))
        assert not next_beat(place, hooked).stands
        assert next_beat(place, hooked).stands
        assert hooked.enlisted == [owner, owner]


def test_an_owner_that_leaves_gives_back_its_runs_and_its_lease(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    before = len(hearts())
    runs = [holder.claim(f"r-{number}", "w") for number in range(3)]
    runs[1].save({"n": 1})
    holder.close()
    assert hooked.retired == hooked.enlisted
    assert len(hearts()) == before - 1 + 1  # the heart of `holder` began and ended
    assert {one.status for one in other.runs().items} == {"ready"}
    assert {one.holder for one in other.runs().items} == {None}
    with other.run("r-1") as run:
        assert run.state == {"n": 1}


def test_leaving_twice_is_leaving_once(hooked: HookedStore, holder: Store):
    holder.claim("r", "w")
    holder.close()
    holder.close()
    assert len(hooked.retired) == 1


def test_who_never_was_an_owner_does_not_retire(hooked: HookedStore, holder: Store):
    holder.save("r", {}, workflow="w")
    holder.close()
    assert hooked.retired == []


def test_an_owner_that_could_not_retire_has_stopped_beating_all_the_same(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    before = len(hearts())
    run = holder.claim("r", "w")
    run.close()
    hooked.at, hooked.how = hooked.operations + 1, "fail"
    with pytest.raises(StoreFailed):
        holder.close()
    assert len(hearts()) == before
    assert other.look("r").status == "ready"


def test_a_late_handle_does_not_keep_a_run_that_nobody_was_told_of(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    late = holder.claim("r", "w")
    place.freeze(holder)
    other.claim("r").close()
    hooked.at, hooked.when, hooked.how = hooked.operations + 1, "after", "fail"
    with pytest.raises(StoreFailed):
        holder.claim_due("w")
    assert other.look("r").status == "running"

    place.beat(holder)

    assert other.look("r").status == "ready"
    assert late.is_open  # it has not found out yet
    with pytest.raises(keepstep.ClaimLost):
        late.save({"n": 1})
    assert other.look("r").step is None
