"""mur: a checkpoint before each step; load one, load the latest by number, clean up.

Going back is tested with rollback.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

import keepstep
from tests.seeds.stored_files import holds

STEPS = ("fetch", "build", "test", "ship")


def variables(step: int, *, rewritten: bool = False) -> dict[str, Any]:
    """What the workflow knows before a step: it grows, or all of it changes each time."""
    if rewritten:
        return {"noise": random.Random(step).randbytes(3000), "completed": list(STEPS[:step])}
    return {"log": [f"line {number} " * 20 for number in range(step)], "completed": list(STEPS[:step])}


# --- before each step ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crash_in", [*STEPS, None])
def test_a_workflow_that_crashes_in_a_step_begins_again_with_that_step(place, crash_in):
    begun: list[str] = []
    for dies_in in (crash_in, None):
        store = place.open()
        run = store.claim("job-1", "release")
        for step in STEPS[STEPS.index(run.next) if run.next else 0 :]:
            known = run.state["variables"] if run.state else {}
            if run.next != step:
                run.save({"variables": known, "completed": list(STEPS[: STEPS.index(step)])}, next=step)
            begun.append(step)
            if step == dies_in:
                place.kill(store)
                break
            after = {**run.state["variables"], step: f"{step} done"}
            run.save({"variables": after, "completed": [*run.state["completed"], step]})
        else:
            run.finish()
            break

    again = 0 if crash_in is None else STEPS.index(crash_in) + 1
    assert begun == [*STEPS[:again], *STEPS[max(again - 1, 0) :]]
    look = place.open().look("job-1")
    assert look.state == {"variables": {step: f"{step} done" for step in STEPS}, "completed": list(STEPS)}
    assert look.status == "finished"


# --- load one, load the latest by number -----------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [range(12), (9, 10), (99, 100, 1000), (0, 2, 1 << 40)], ids=repr)
def test_the_latest_is_the_one_with_the_highest_number(place, numbers):
    store = place.open()
    for number in numbers:
        store.save("job-1", {"number": number}, step=number, workflow="release")

        for one in (store, place.open()):
            assert one.load("job-1").step == number
            assert one.load("job-1").state == {"number": number}
    for number in numbers:
        assert store.at("job-1", step=number).state == {"number": number}
    assert [line.step for line in store.history("job-1").items] == sorted(numbers, reverse=True)


def test_there_is_no_latest_of_nothing(store):
    assert store.load("job-1") is None
    with pytest.raises(keepstep.NoSuchRun):
        store.at("job-1", step=1)


# --- a corrupt newest checkpoint -------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["grows", "rewritten"])
def corrupt(request, place) -> tuple[keepstep.Store, dict[str, Any]]:
    """A store in which the newest of four checkpoints is damaged, as another process finds it; and the one before."""
    store = place.open()
    for step in range(1, 5):
        store.save("job-1", variables(step, rewritten=request.param), next=f"step {step}", workflow="release")
    place.damage(store, "job-1", store.load("job-1").seq)
    return place.open(), variables(3, rewritten=request.param)


def test_a_corrupt_newest_checkpoint_is_told_and_not_passed_over(corrupt):
    store, _ = corrupt

    for read in (store.load, store.look, store.at, store.claim):
        with pytest.raises(keepstep.Damaged, match="'job-1'"):
            read("job-1")

    assert store.runs().items[0].status == "ready"


def test_a_corrupt_newest_checkpoint_does_not_hide_the_good_one_before_it(corrupt):
    store, good = corrupt

    report = store.verify("job-1")

    lines = store.history("job-1").items
    assert [one.seq for one in report.damage] == [lines[0].seq]
    assert [line.step for line in lines] == [4, 3, 2, 1]
    assert report.last_good == lines[1].seq
    for found in (store.at("job-1", seq=report.last_good), store.at("job-1", step=3)):
        assert (found.step, found.next, found.state) == (3, "step 3", good)
    assert store.at("job-1", step=1).state["completed"] == ["fetch"]


def test_the_work_goes_on_from_the_good_one(corrupt):
    store, good = corrupt

    store.fork("job-1", 3, id="job-1-b")

    with store.run("job-1-b") as run:
        assert (run.state, run.step, run.next) == (good, 3, "step 3")
        assert run.save({**good, "again": True}) == 4
    assert store.verify("job-1-b").ok


# --- cleaning up -----------------------------------------------------------------------------------------------------


def fill(store: keepstep.Store, run_id: str, secret: str) -> None:
    """A run that holds its secret everywhere a text can be."""
    with store.run(run_id, f"{secret} workflow") as run:
        for number in range(5):
            run.save({"text": f"{secret} state {number}"}, next=f"{secret} next", label=f"{secret} label {number}")
        run.tag({f"{secret} tag": f"{secret} value"})
        run.note(f"{secret} note")
    with suppress(ValueError), store.run(run_id):
        raise ValueError(f"{secret} error")
    with store.run(run_id) as run:
        run.finish({"text": f"{secret} result"})


WHERE = ("workflow", "state 0", "state 4", "next", "label 0", "label 4", "tag", "value", "note", "result")
"""Where it can be found as it is: the error, with its traceback, is compressed."""


def test_cleaning_up_removes_everything(disk_place):
    store, other = disk_place.open(), disk_place.open()
    run_ids = [f"job-{number}" for number in range(12)]
    for run_id in run_ids:
        fill(store, run_id, f"{run_id}'s secret")
    assert [where for where in WHERE if not holds(disk_place.folder, f"job-7's secret {where}")] == []

    for run_id in run_ids:
        assert other.delete(run_id)

    size = store.size()
    assert (size.runs, size.records, size.heads, size.bodies) == (0, 0, 0, 0)
    assert store.runs().items == store.due().items == []
    for one in (other, store):
        one.close()
    assert not holds(disk_place.folder, "secret")


def test_cleaning_up_one_run_leaves_the_others_whole(disk_place):
    store = disk_place.open()
    for run_id in ("job-1", "job-2", "job-3"):
        fill(store, run_id, f"{run_id}'s secret")

    store.delete("job-2")
    store.close()

    assert not holds(disk_place.folder, "job-2's secret")
    kept = disk_place.open()
    for run_id in ("job-1", "job-3"):
        assert kept.verify(run_id).ok
        assert kept.look(run_id).result == {"text": f"{run_id}'s secret result"}
        assert [where for where in WHERE if not holds(disk_place.folder, f"{run_id}'s secret {where}")] == []


def test_cleaning_up_by_list_removes_what_is_done_and_nothing_else(place):
    store = place.open()
    for number in range(6):
        with store.run(f"job-{number}", "release") as run:
            run.save(variables(number), next="step")
            if number % 2:
                run.finish()

    for line in store.runs("release", status="finished").items:
        assert store.delete(line.run_id)

    left = place.open()
    assert {line.run_id for line in left.runs().items} == {"job-0", "job-2", "job-4"}
    assert [left.load(f"job-{number}").state for number in (0, 2, 4)] == [variables(number) for number in (0, 2, 4)]
    assert left.load("job-1") is None
