"""A worker is stopped inside its step and wakes after its lease: it writes nothing, and its successor is untouched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import keepstep
from tests.crash.processes import Report, Worker
from tests.crash.shared_clock import SharedClock

LEASE_SECONDS = 30.0


def open_at(url: str, clock_path: Path) -> keepstep.Store:
    """The store, with the clock that the test turns: no heart beats but when it is turned."""
    return keepstep.open(url, lease=LEASE_SECONDS, clock=SharedClock(clock_path))


def work_and_sleep(report: Report, hear: Any, url: str, clock_path: Path) -> None:
    """Save, tell that the step's work has begun, and try to write when it is over."""
    with open_at(url, clock_path) as store:
        with store.run("run", "w") as run:
            run.save({"by": "sleeper", "n": 1})
            report("at work")
            hear()
            for write in (
                lambda: run.save({"by": "sleeper", "n": 2}),
                lambda: run.finish("slept"),
                lambda: run.note(1),
            ):
                report(_told_by(write))
        report(_told_by(lambda: run.save({"n": 3})))
        report(store.save("its own", {"n": 1}, workflow="w"))  # the process itself is well
    report("left in good order")


def work_and_sleep_async(report: Report, hear: Any, url: str, clock_path: Path) -> None:
    """The same with the async handles."""

    async def main() -> None:
        async with keepstep.open_async(url, lease=LEASE_SECONDS, clock=SharedClock(clock_path)) as store:
            async with store.run("run", "w") as run:
                await run.save({"by": "sleeper", "n": 1})
                report("at work")
                await asyncio.to_thread(hear)
                for write in (lambda: run.save({"n": 2}), lambda: run.finish("slept"), lambda: run.note(1)):
                    report(await _told_by_async(write))
            report(await _told_by_async(lambda: run.save({"n": 3})))
            report(await store.save("its own", {"n": 1}, workflow="w"))
        report("left in good order")

    asyncio.run(main())


def let_the_loss_leave_the_block(report: Report, hear: Any, url: str, clock_path: Path) -> None:
    """Catch nothing: the error leaves the block as it is, and is no failure of the run."""
    with open_at(url, clock_path) as store:
        try:
            with store.run("run", "w") as run:
                run.save({"by": "sleeper", "n": 1})
                report("at work")
                hear()
                run.save({"by": "sleeper", "n": 2})
        except keepstep.ClaimLost:
            report("ClaimLost")


def _told_by(write: Any) -> str:
    try:
        write()
    except keepstep.KeepstepError as error:
        return type(error).__name__
    return "written"


async def _told_by_async(write: Any) -> str:
    try:
        await write()
    except keepstep.KeepstepError as error:
        return type(error).__name__
    return "written"


@pytest.mark.parametrize("function", [work_and_sleep, work_and_sleep_async])
@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_a_stopped_worker_that_wakes_after_a_takeover_writes_nothing(kind, function, tmp_path):
    url, clock = f"{kind}:{tmp_path / 'store'}", SharedClock(tmp_path / "clock")
    with open_at(url, clock.path) as store, Worker(function, url, clock.path) as sleeper:
        assert sleeper.hear() == "at work"
        sleeper.stop()
        clock.turn(LEASE_SECONDS + 1)
        with store.run("run") as successor:
            assert successor.state == {"by": "sleeper", "n": 1}
            assert successor.deaths == 1
            successor.save({"by": "successor", "n": 2})
            before = store.look("run").digest

            sleeper.tell("your call has ended")
            sleeper.go_on()
            told = sleeper.rest()

            assert told == ["ClaimLost", "ClaimLost", "ClaimLost", "WrongUse", 1, "left in good order"]
            assert store.look("run").digest == before
            successor.save({"by": "successor", "n": 3})
            successor.finish("by successor")
        look = store.look("run")
        assert (look.status, look.result, look.step) == ("finished", "by successor", 3)
        assert [line.epoch for line in store.history("run", newest_first=False).items] == [1, 2, 2]
        assert store.verify("run").ok


@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_a_stopped_worker_that_wakes_after_its_run_was_finished_leaves_the_result_alone(kind, tmp_path):
    url, clock = f"{kind}:{tmp_path / 'store'}", SharedClock(tmp_path / "clock")
    with open_at(url, clock.path) as store, Worker(let_the_loss_leave_the_block, url, clock.path) as sleeper:
        assert sleeper.hear() == "at work"
        sleeper.stop()
        clock.turn(LEASE_SECONDS + 1)
        with store.run("run") as successor:
            successor.finish("by successor")
        before = store.look("run").digest

        sleeper.tell("your call has ended")
        sleeper.go_on()

        assert sleeper.rest() == ["ClaimLost"]
        assert store.look("run").digest == before
        assert store.look("run").status == "finished"


@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_a_stopped_worker_that_wakes_before_anybody_came_goes_on(kind, tmp_path):
    url, clock = f"{kind}:{tmp_path / 'store'}", SharedClock(tmp_path / "clock")
    with open_at(url, clock.path) as store, Worker(work_and_sleep, url, clock.path) as sleeper:
        assert sleeper.hear() == "at work"
        sleeper.stop()
        clock.turn(LEASE_SECONDS + 1)
        assert [one.run_id for one in store.due().items] == ["run"]
        sleeper.tell("your call has ended")
        sleeper.go_on()
        assert sleeper.rest() == ["written", "written", "WrongUse", "WrongUse", 1, "left in good order"]
        assert store.look("run").result == "slept"
