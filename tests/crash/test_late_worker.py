"""A worker that was frozen for longer than its lease wakes up late: everything it writes is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import keepstep
from tests.places import Place

WRITES: dict[str, Callable[[Any], Any]] = {
    "save": lambda run: run.save({"by": "late"}),
    "finish": lambda run: run.finish("late"),
    "note": lambda run: run.note("late"),
    "tag": lambda run: run.tag(by="late"),
}


def _begin(place: Place) -> tuple[keepstep.Store, keepstep.Run, keepstep.Store]:
    """A run that is held by a store whose process has just been frozen for too long; and another store."""
    first, second = place.open(), place.open()
    run = first.claim("run", "w")
    run.save({"by": "first"})
    place.freeze(first)
    return first, run, second


@pytest.mark.parametrize("verb", WRITES)
def test_a_late_worker_cannot_write_and_its_successor_is_untouched(place, verb):
    _, late, second = _begin(place)
    successor = second.claim("run")
    successor.save({"by": "second"})
    before = second.look("run")

    with pytest.raises(keepstep.ClaimLost, match="run"):
        WRITES[verb](late)

    assert second.look("run") == before
    assert not late.is_open
    successor.save({"by": "second", "again": True})
    successor.finish("second")
    assert second.look("run").result == "second"
    assert second.verify("run").ok


def test_every_further_write_of_a_late_worker_is_refused(place):
    _, late, second = _begin(place)
    second.claim("run").save({"by": "second"})

    for _ in range(2):
        for write in WRITES.values():
            with pytest.raises(keepstep.ClaimLost):
                write(late)

    assert second.look("run").state == {"by": "second"}


def test_a_late_worker_that_leaves_does_not_release_its_successor(place):
    _, late, second = _begin(place)
    successor = second.claim("run")

    late.close()

    assert second.look("run").status == "running"
    successor.save({"by": "second"})
    successor.finish()


def test_a_late_worker_that_fails_does_not_fail_its_successor(place):
    first, second = place.open(), place.open()
    successors = []

    def work():
        with first.run("run", "w"):
            place.freeze(first)
            successors.append(second.claim("run"))
            raise OSError("the call timed out")

    with pytest.raises(OSError, match="the call timed out"):
        work()

    assert second.look("run").status == "running"
    successors[0].finish("second")


def test_a_late_worker_cannot_write_to_a_run_that_was_finished(place):
    _, late, second = _begin(place)
    second.claim("run").finish("second")

    with pytest.raises(keepstep.ClaimLost):
        late.save({"by": "late"})
    with pytest.raises(keepstep.ClaimLost):
        late.finish("late")

    assert second.look("run").result == "second"
    assert second.look("run").step == 1


def test_a_late_worker_cannot_write_to_a_run_that_is_free_again(place):
    _, late, second = _begin(place)
    second.claim("run").close()

    with pytest.raises(keepstep.ClaimLost):
        late.save({"by": "late"})

    assert second.look("run").status == "ready"
    assert second.look("run").state == {"by": "first"}


def test_a_late_worker_cannot_write_to_a_run_that_was_saved_without_a_claim(place):
    _, late, second = _begin(place)
    second.save("run", {"by": "second"})

    with pytest.raises(keepstep.ClaimLost):
        late.save({"by": "late"})

    assert second.look("run").state == {"by": "second"}


def test_a_late_worker_cannot_write_to_the_next_life_of_its_run(place):
    _, late, second = _begin(place)
    second.delete("run")
    reborn = second.claim("run", "w")
    reborn.save({"by": "second"})

    with pytest.raises(keepstep.RunGone):
        late.save({"by": "late"})

    assert reborn.epoch > late.epoch
    assert second.look("run").state == {"by": "second"}


def test_a_late_worker_may_claim_again_when_the_run_is_free(place):
    first, late, second = _begin(place)
    second.claim("run").close()
    with pytest.raises(keepstep.ClaimLost):
        late.save({"by": "late"})

    with first.run("run") as again:
        again.save({"by": "first again"})

    assert second.look("run").state == {"by": "first again"}


def test_a_late_worker_whose_run_nobody_took_goes_on(place):
    _, late, second = _begin(place)
    second.tag("run", seen=True)  # a foreign append, not a claim

    late.save({"by": "first", "n": 2})
    late.finish("first")

    assert second.look("run").result == "first"
    assert second.look("run").tags == {"seen": True}


def test_a_takeover_of_one_run_leaves_the_others_to_their_owner(place):
    first, second = place.open(), place.open()
    runs = [first.claim(f"run {number}", "w") for number in range(3)]
    place.freeze(first)
    second.claim("run 1").finish("second")

    runs[0].save({"by": "first"})
    with pytest.raises(keepstep.ClaimLost):
        runs[1].save({"by": "first"})
    runs[2].finish("first")

    assert second.look("run 0").state == {"by": "first"}
    assert second.look("run 2").result == "first"
