"""Whatever fails in a rollback, and whenever: nothing is undone twice, and the run ends up where it would have.

The judge is a file outside of the store, in which every undo leaves a line. Whoever calls rollback again after a crash
tells by what the file says whether an undo in doubt was made.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest

import keepstep
from keepstep.api.places import store_for
from keepstep.runtime.inline import drive
from keepstep.testing import FaultyStore, SimulatedCrash
from keepstep.testing.faults import How, When
from tests.crash.outside import Outside, Strike
from tests.crash.points import at_every_point
from tests.crash.processes import Report, Worker
from tests.crash.rollback_programs import EFFECTS, KEPT, RUN, WHOLE, Operator, Undos, fill, judge
from tests.crash.saving import LEASE
from tests.handles import open_behind
from tests.places import Place

FAULTS: dict[str, tuple[When, How]] = {
    "crash before": ("before", "crash"),
    "crash after": ("after", "crash"),
    "error before": ("before", "fail"),
    "lost reply": ("after", "fail"),
    "disk full": ("before", "full"),
}
STRIKES = [f"{how} {when}" for how in ("die", "interrupt", "raise") for when in ("before", "after")]
PLACES = [f"{kind}-{mode}" for kind in ("memory", "dir", "sqlite", "postgres") for mode in ("sync", "async")]
QUICK = {
    "memory-sync": {*FAULTS, *STRIKES},
    "memory-async": {"crash after", "interrupt after", "die before"},
    "dir-sync": {"crash after", "die after"},
    "sqlite-sync": {"crash after", "die after", "lost reply"},
    "sqlite-async": {"crash before", "die after"},
    "postgres-sync": {"die after"},
    "postgres-async": {"lost reply"},
}
CALLS_MAX = 12
"""A rollback that is not at its end after so many is going round in circles."""
KILLS_MAX = 10
"""Of one rollback."""


def _cases(faults: Iterable[str]) -> list[Any]:
    """Every store in every way; what takes longer than it tells is left to the soak tests."""
    return [
        pytest.param(where, fault, marks=() if fault in QUICK.get(where, ()) else pytest.mark.soak)
        for where, fault in product(PLACES, faults)
    ]


@pytest.mark.parametrize(("where", "fault"), _cases(FAULTS))
def test_whatever_operation_of_the_store_fails_nothing_is_undone_twice(where, fault, folder):
    when, how = FAULTS[fault]

    def go(place: Place, at: int) -> bool:
        faulty = FaultyStore(store_for(place.url, place.clock, read_only=False), at, when, how)
        _to_the_end(place, faulty, Outside(place.folder / "outside"))
        return faulty.operations >= at

    at_every_point(where, folder, go, least=20)


@pytest.mark.parametrize(("where", "fault"), _cases(STRIKES))
def test_whatever_befalls_a_process_inside_an_undo_nothing_is_undone_twice(where, fault, folder):
    how, when = fault.split()

    def go(place: Place, at: int) -> bool:
        faulty = FaultyStore(store_for(place.url, place.clock, read_only=False))
        strike = Strike(at, when, how)  # type: ignore[arg-type]
        _to_the_end(place, faulty, Outside(place.folder / "outside", strike=strike))
        return strike.struck

    at_every_point(where, folder, go, least=len(EFFECTS))


def _to_the_end(place: Place, faulty: FaultyStore, outside: Outside) -> None:
    """Call rollback, from process after process, until the run has gone back; then judge."""
    watcher = place.open()
    fill(watcher)
    store = place.open(cast(Any, faulty))
    outside.die = lambda: setattr(faulty, "dead", True)
    operator = Operator(Undos(outside), place.mode)
    for number in range(CALLS_MAX):
        if watcher.look(RUN).line > 1:
            break
        left = _left(watcher)
        try:
            report = operator.go_back(store)
        except SimulatedCrash:
            if faulty.dead:
                place.kill(store)
                drive(faulty.store.close())
                outside = Outside(outside.path, by=number + 1)
                store, operator = place.open(), Operator(Undos(outside), place.mode)
        except (keepstep.StoreError, keepstep.UndoFailed, keepstep.RollbackRefused):
            _judge_cut_off(watcher, left)
        else:
            assert sorted((one.key, one.outcome) for one in report.items) == sorted(WHOLE)
            assert watcher.look(RUN).status == "ready"
    place.kill(store)
    again = Operator(Undos(outside), place.mode).go_back(place.open())
    assert sorted((one.key, one.outcome) for one in again.items) == sorted(WHOLE)
    judge(watcher, outside)


def _left(store: keepstep.Store) -> list[tuple[str, str]]:
    """What there is to report."""
    statuses = {one.key: one.status for one in store.effects(RUN)}
    undone = [(key, "undone") for key in EFFECTS if statuses[key] != "undone"]
    return sorted([*undone, (KEPT, "kept")])


def _judge_cut_off(store: keepstep.Store, left: list[tuple[str, str]]) -> None:
    """A run that has not gone back is as it was, or nobody can enter it."""
    look = store.look(RUN)
    if look.line == 1 and look.status != "finished":
        assert look.status in ("ready", "running")
        with pytest.raises((keepstep.RollbackUnderWay, keepstep.RunHeld)):
            store.claim(RUN)
        assert store.claim_due(limit=5) == []
    else:
        assert look.line == 2 or left == _left(store)


# --- real kills ------------------------------------------------------------------------------------------------------


def go_back(  # noqa: PLR0917 - a pipe carries them
    report: Report, hear: Any, url: str, mode: str, path: Path, number: int
) -> None:
    """Call rollback until the run has gone back; then wait to be killed."""
    store: Any = keepstep.open(url, lease=LEASE) if mode == "sync" else open_behind(url, lease=LEASE)
    report("open")
    to_the_end(store, mode, Outside(path, by=number))
    report("back")
    hear()


def to_the_end(store: Any, mode: str, outside: Outside) -> None:
    """The same with an open store."""
    operator = Operator(Undos(outside, slow=True), mode)
    for _ in range(CALLS_MAX):
        with suppress(keepstep.UndoFailed, keepstep.RollbackRefused):
            assert sorted((one.key, one.outcome) for one in operator.go_back(store).items) == sorted(WHOLE)
            return
    raise AssertionError("the rollback goes round in circles")


def _kill_many(kind: str, folder: Path, *, runs: int, seed: int) -> None:
    chance = random.Random(seed)
    for one in range(runs):
        url, outside = f"{kind}:{folder / f'store {one}'}", Outside(folder / f"outside {one}", by=99)
        with keepstep.open(url, lease=LEASE) as store:
            fill(store)
        for number in range(1, KILLS_MAX + 1):
            mode = chance.choice(("sync", "sync", "async"))
            with Worker(go_back, url, mode, outside.path, number) as worker:
                assert worker.hear() == "open"
                time.sleep(chance.random() * chance.choice((0.004, 0.012, 0.03)))  # the moment is the test
                if "back" in worker.kill():
                    break
        with keepstep.open(url, lease=LEASE) as store:
            to_the_end(store, "sync", outside)
            judge(store, outside)


@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_nothing_is_undone_twice_when_processes_are_killed(kind, folder):
    _kill_many(kind, folder, runs=5, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_nothing_is_undone_twice_when_thousands_of_processes_are_killed(kind, seed, folder):
    _kill_many(kind, folder, runs=40, seed=100 + seed)
