"""Every operation of a store fails in turn, before it is done and after it, in whole scenarios of public calls.

A store holds what a plain model holds: what the model held before the call that was cut off, or after it. The scenario
then goes on to its end, and the store holds what it would hold if nothing had happened.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import keepstep
from keepstep.api.places import store_for
from keepstep.testing import FaultyStore, SimulatedCrash
from keepstep.testing.faults import How, When
from tests.crash.plain_model import Model, picture, unsound
from tests.crash.scenarios import SCENARIOS
from tests.crash.scripts import Step, World
from tests.places import Place

FAULTS: dict[str, tuple[When, How]] = {
    "crash before": ("before", "crash"),
    "crash after": ("after", "crash"),
    "error before": ("before", "fail"),
    "lost reply": ("after", "fail"),
    "disk full": ("before", "full"),
}
PLACES = [f"{kind}-{mode}" for kind in ("memory", "dir", "sqlite", "postgres") for mode in ("sync", "async")]
QUICK_SYNC = {"memory-sync", "dir-sync", "sqlite-sync"}
QUICK_OTHERS = {
    ("memory-async", "crash before"),
    ("sqlite-async", "crash after"),
    ("sqlite-async", "lost reply"),
    ("postgres-sync", "crash after"),
    ("postgres-async", "lost reply"),
}
OPERATIONS_MAX = 500
MEMORY_DISK = Path("/dev/shm")


class Stop(NamedTuple):
    """Where a script stopped: at which step, what the store may hold there, and why it stopped."""

    at: int
    before: Model
    after: list[Model]
    error: BaseException | None


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder where a sync costs nothing; what is lost without one is the business of the power loss tests."""
    if not MEMORY_DISK.is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=MEMORY_DISK))
    yield folder
    shutil.rmtree(folder)


def _cases() -> list[Any]:
    """Every store in every way; what takes longer than it tells is left to the soak tests."""
    cases: list[Any] = []
    for where, fault, scenario in product(PLACES, FAULTS, SCENARIOS):
        quick = where in QUICK_SYNC or (where, fault) in QUICK_OTHERS
        cases.append(pytest.param(where, scenario, fault, marks=() if quick else pytest.mark.soak))
    return cases


@pytest.mark.parametrize(("where", "scenario", "fault"), _cases())
def test_whatever_operation_fails_the_store_holds_what_the_model_holds(where, scenario, fault, quick_folder):
    script = SCENARIOS[scenario]
    for victim in sorted({step.who for step in script}):
        for at in count(1):
            assert at < OPERATIONS_MAX
            folder = quick_folder / f"{victim}{at}"
            folder.mkdir()
            kind, mode = where.split("-")
            place = Place(kind, mode, folder)
            try:
                struck = _survives(place, script, victim, at, fault)
            except AssertionError as error:
                error.add_note(f"operation {at} of {victim}, {fault}")
                raise
            finally:
                place.close()
            if not struck:
                assert at > 3, "the scenario does nothing that could fail"
                break


def _survives(place: Place, script: list[Step], victim: str, at: int, fault: str) -> bool:
    when, how = FAULTS[fault]
    faulty = FaultyStore(store_for(place.url, place.clock, read_only=False), at, when, how)
    world = World(place, {victim: faulty})
    observer = place.open()
    stop = _go(world, script, 0, Model())
    if stop.error is not None:
        if how == "crash":
            world.kill(victim)
        stop = _go(world, script, *_look_and_choose(observer, script, stop))
        assert stop.error is None
    assert picture(observer) == stop.before.runs
    assert unsound(observer) == []
    world.kill_all()
    return faulty.operations >= at


def _go(world: World, script: list[Step], start: int, model: Model) -> Stop:
    """Go on with a script until its end, or until a step fails."""
    for at in range(start, len(script)):
        step = script[at]
        after = [one.copy() for one in step.after(model.copy())]
        try:
            step.do(world)
        except (SimulatedCrash, keepstep.StoreError) as error:
            return Stop(at, model, after, error)
        model = after[-1]
    return Stop(len(script), model, [], None)


def _look_and_choose(observer: keepstep.Store, script: list[Step], stop: Stop) -> tuple[int, Model]:
    """What the store holds is what the model held before the step, or after it, or in between: go on from there."""
    found = picture(observer)
    assert unsound(observer) == []
    if found == stop.after[-1].runs:
        return stop.at + 1, stop.after[-1]
    between = [*stop.after, *script[stop.at].interrupted(stop.before.copy())]
    known = [one for one in (stop.before, *between) if one.runs == found]
    assert known, f"step {script[stop.at]} left {found}, from {stop.before.runs} on the way to {stop.after[-1].runs}"
    return stop.at, known[0]
