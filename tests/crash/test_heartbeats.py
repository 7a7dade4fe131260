"""Live runs are never claimable: not beside saves, foreign appends and busy loops, however often others sweep.

Time is turned only as fast as the slowest heart beats: a test that is slow loses no lease, and one whose heart has
stopped never ends.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import keepstep
from keepstep.runtime.clock import SystemClock
from tests.crash.processes import STUCK_SECONDS, Report, Worker
from tests.crash.shared_clock import SharedClock

LEASE_SECONDS = 0.3
RUNS_EACH = 2
LATE_SECONDS = 2.0


class Shared(NamedTuple):
    """The store that all workers share, and how they open it."""

    url: str
    clock_path: Path | None
    """None: the time of the host."""
    lease_seconds: float

    @property
    def how(self) -> dict[str, Any]:
        clock = SystemClock() if self.clock_path is None else SharedClock(self.clock_path)
        return {"lease": self.lease_seconds, "clock": clock}


def hold_in_threads(report: Report, hear: Any, shared: Shared, name: str) -> None:
    """Hold some runs and save them in threads, until told to end."""
    stop = threading.Event()
    saves: list[int] = []

    def work(run: keepstep.Run) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            run.save({"number": number})
        run.finish(number)
        saves.append(number)

    with keepstep.open(shared.url, **shared.how) as store:
        runs = [store.claim(f"{name} {number}", "w") for number in range(RUNS_EACH)]
        threads = [threading.Thread(target=work, args=(run,)) for run in runs]
        report("holding")
        for thread in threads:
            thread.start()
        hear()
        stop.set()
        for thread in threads:
            thread.join()
    report(len(saves), sum(saves))


def hold_idle(report: Report, hear: Any, shared: Shared, name: str) -> None:
    """Hold some runs and do nothing, as during a model call."""
    with keepstep.open(shared.url, **shared.how) as store:
        runs = [store.claim(f"{name} {number}", "w") for number in range(RUNS_EACH)]
        report("holding")
        hear()
        for run in runs:
            run.save({"number": 1})
            run.finish(1)
    report(RUNS_EACH, RUNS_EACH)


def hold_with_a_blocked_loop(report: Report, hear: Any, shared: Shared, name: str) -> None:
    """Hold some runs with the async handles, on a loop that is blocked by a call that should have been awaited."""

    async def main() -> None:
        async with keepstep.open_async(shared.url, **shared.how) as store:
            runs = [await store.claim(f"{name} {number}", "w") for number in range(RUNS_EACH)]
            report("holding")
            hear()
            for run in runs:
                await run.save({"number": 1})
                await run.finish(1)

    asyncio.run(main())
    report(RUNS_EACH, RUNS_EACH)


def append_from_outside(report: Report, hear: Any, shared: Shared, names: list[str]) -> None:
    """Tag runs that others hold, note on them, and create runs that are there to be claimed, until told to end."""
    stop = threading.Event()
    count = 0

    def append() -> None:
        nonlocal count
        while not stop.is_set():
            count += 1
            for name in names:
                store.tag(f"{name} 0", seen=count)
                store.note(f"{name} 1", count)
            if count % 10 == 1:
                store.save(f"bait {count}", {"number": count}, workflow="bait")

    with keepstep.open(shared.url, **shared.how) as store:
        thread = threading.Thread(target=append)
        thread.start()
        report("appending")
        hear()
        stop.set()
        thread.join()
    report(len(range(1, count + 1, 10)))


def sweep(report: Report, hear: Any, shared: Shared, name: str) -> None:
    """Claim whatever can be claimed, until told to end; report what it was.

    One run is held all the while, so that the test sees this owner's lease.
    """
    stop = threading.Event()
    claimed: list[str] = []

    def claim() -> None:
        while not stop.is_set():
            claimed.extend(one.run_id for one in store.due().items if not one.run_id.startswith("bait"))
            for run in store.claim_due(limit=3):
                claimed.append(run.id)
                run.finish()

    with keepstep.open(shared.url, **shared.how) as store:
        own = store.claim(name, "w")
        threads = [threading.Thread(target=claim) for _ in range(2)]
        for thread in threads:
            thread.start()
        report("sweeping")
        hear()
        stop.set()
        for thread in threads:
            thread.join()
        own.finish()
    report(claimed)


HOLDERS: dict[str, Callable[..., None]] = {
    "saving": hold_in_threads,
    "idle": hold_idle,
    "blocked": hold_with_a_blocked_loop,
}
SWEEPERS = ("first sweeper", "second sweeper")
HELD = [*(f"{name} {number}" for name in HOLDERS for number in range(RUNS_EACH)), *SWEEPERS]


def _sweep_while_they_live(shared: Shared, let_time_pass: Callable[[], None]) -> None:
    with ExitStack() as stack:
        holders = [stack.enter_context(Worker(how, shared, name)) for name, how in HOLDERS.items()]
        assert [one.hear() for one in holders] == ["holding"] * len(holders)
        appender = stack.enter_context(Worker(append_from_outside, shared, list(HOLDERS)))
        sweepers = [stack.enter_context(Worker(sweep, shared, name)) for name in SWEEPERS]
        assert [one.hear() for one in (appender, *sweepers)] == ["appending", "sweeping", "sweeping"]

        let_time_pass()

        for worker in (appender, *holders):
            worker.tell("end")
        [baits] = appender.rest()
        told = [worker.rest() for worker in holders]
        for worker in sweepers:
            worker.tell("end")
        claimed = sorted(run_id for worker in sweepers for [swept] in [worker.rest()] for run_id in swept)

    assert [one for one in claimed if not one.startswith("bait")] == []
    assert len(claimed) == len(set(claimed))
    assert len(claimed) >= baits - 1, "the sweepers did not claim what they could"
    assert [[finished for finished, _ in one] for one in told] == [[RUNS_EACH]] * len(HOLDERS)
    with keepstep.open(shared.url) as store:
        for name in HOLDERS:
            for number in range(RUNS_EACH):
                look = store.look(f"{name} {number}")
                assert (look.status, look.epoch, look.deaths) == ("finished", 1, 0)
                assert look.state == {"number": look.result}
                assert store.verify(look.run_id).ok


@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_sweeping_steals_nothing_from_hearts_that_beat(kind, tmp_path):
    url = f"{kind}:{tmp_path / 'store'}"
    clock = SharedClock(tmp_path / "clock")

    def turn() -> None:
        started, begin_us = time.monotonic(), clock.now_us()
        turned = started
        with keepstep.open(url, clock=clock) as store:
            while clock.now_us() < begin_us + 8 * LEASE_SECONDS * 1e6:
                # A heart that was held up between two lines waits from there on, and so a little longer than half.
                is_late = time.monotonic() > turned + LATE_SECONDS
                if _least_lease(store, clock) > timedelta(seconds=LEASE_SECONDS / (8 if is_late else 2)):
                    clock.turn(LEASE_SECONDS / 10)
                    turned = time.monotonic()
                assert time.monotonic() < started + STUCK_SECONDS, "a heart has stopped"

    _sweep_while_they_live(Shared(url, clock.path, LEASE_SECONDS), turn)


def _least_lease(store: keepstep.Store, clock: SharedClock) -> timedelta:
    """How much is left of the lease that ends first."""
    held = [one for one in store.runs(status="running").items if one.run_id in HELD]
    assert len(held) == len(HELD), "a run is held no more"
    now = timedelta(microseconds=clock.now_us())
    return min(timedelta(seconds=one.holder.until.timestamp()) - now for one in held if one.holder is not None)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_sweeping_steals_nothing_in_real_time(kind, tmp_path):
    _sweep_while_they_live(Shared(f"{kind}:{tmp_path / 'store'}", None, 5.0), lambda: time.sleep(60))


def test_a_heart_that_stopped_loses_its_runs_after_its_lease(place):
    first, second = place.open(), place.open()
    first.claim("run", "w").save({"number": 1})
    assert second.claim_due() == []

    place.freeze(first)

    assert [run.id for run in second.claim_due()] == ["run"]


def test_a_claim_that_could_not_be_given_back_is_given_back_by_the_heart(place):
    store, other = place.open(), place.open()
    run = store.claim("run", "w")
    run._claim.engine.ownership.drop(run._claim.writer)  # as if its release had failed

    beats = store._session._engine.ownership._heart
    for _ in range(1000):
        if other.look("run").status != "running":
            break
        place.clock.turn(1)
        time.sleep(0.001)

    assert beats is not None
    assert other.look("run").status == "ready"
