"""The worker: no-op steps per second, and how soon a run goes on that was answered, or whose worker died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import peers
from benchmarks.floor import Floor
from benchmarks.folder import ROOT
from benchmarks.fresh import find
from benchmarks.row import Row
from benchmarks.setting import Setting

RUNS = 100
STEPS = 10
AT_ONCE = 8
POLL_SECONDS = 1.0
LIMIT = 120
"""Seconds; only what is broken takes so long."""

OURS = "benchmarks.working:carry_in_threads"
ON_LOOP = "benchmarks.working:carry_in_tasks"
CONTENDERS = {peers.DBOS: "benchmarks.peers.dbos:carry_steps"}


def rows(setting: Setting) -> Iterator[Row]:
    """Steps per second of runs that were started before, and two times of waiting."""
    runs = setting.times(RUNS, 20)

    def measure(contender: str) -> list[list[float]]:
        return setting.rounds(setting.times(5, 2), carried, contender=contender, runs=runs)

    found = {name: measure(name) for name in (OURS, ON_LOOP)}
    others = setting.beside(CONTENDERS, measure)
    told = {name: f"{_rate(one):,.0f} steps/s, {_ratio(one):.2f}" for name, one in others.items()}
    for name, how in ((OURS, "threads"), (ON_LOOP, "tasks of one loop")):
        yield Row(
            f"worker, {AT_ONCE} at once in {how}: no-op steps per second over floor",
            f"{_rate(found[name]):,.0f} steps/s",
            _ratio(found[name]),
            "of floor",
            peers=told,
            rounds=[steps / floor for steps, floor in found[name]],
        )
    yield _waiting("an answer until its run goes on", setting.rounds(1, answered, count=setting.times(50, 5))[0])
    yield _waiting(
        f"a worker's SIGKILL until its run goes on (poll {POLL_SECONDS:g} s)",
        setting.rounds(1, taken_over, count=setting.times(5, 1))[0],
    )


def _waiting(what: str, seconds: list[float]) -> Row:
    middle = median(seconds)
    return Row(f"from {what}", f"{middle * 1000:,.0f} ms", middle * 1000, "ms", rounds=seconds)


def _rate(found: list[list[float]]) -> float:
    return median(steps for steps, _ in found)


def _ratio(found: list[list[float]]) -> float:
    return median(steps / floor for steps, floor in found)


def carried(folder: str, contender: str, runs: int) -> tuple[float, float]:
    """Steps per second, and appends per second of the floor on the same disk."""
    place = Path(folder)
    payloads = [bytes(200)] * 500
    floor = Floor(place)
    before = floor.append(payloads)
    seconds = find(contender)(place, runs)
    after = floor.append(payloads)
    floor.close()
    return runs * STEPS / seconds, 2 * len(payloads) / (before + after)


def noop_flow() -> Any:
    """Steps that do nothing."""
    import keepstep

    flow = keepstep.Flow("noop", start="step 0")

    def make(number: int) -> None:
        then = f"step {number + 1}" if number + 1 < STEPS else None
        flow.step(name=f"step {number}")(lambda run, state: then)

    for number in range(STEPS):
        make(number)
    return flow


def carry_in_threads(folder: Path, runs: int) -> float:
    """Seconds that a worker's threads take."""
    import keepstep

    flow = noop_flow()
    with keepstep.open(folder / "runs.db") as store:
        handles = [store.start(flow, {}) for _ in range(runs)]
        start = time.perf_counter()
        with store.worker(flow, concurrency=AT_ONCE):
            for one in handles:
                one.result(timeout=LIMIT)
            return time.perf_counter() - start


def carry_in_tasks(folder: Path, runs: int) -> float:
    """Seconds that a worker's tasks take."""
    import asyncio

    import keepstep

    flow = keepstep.Flow("noop", start="step 0")

    def make(number: int) -> None:
        async def step(run: Any, state: Any) -> str | None:
            return f"step {number + 1}" if number + 1 < STEPS else None

        flow.step(name=f"step {number}")(step)

    for number in range(STEPS):
        make(number)

    async def work() -> float:
        async with keepstep.open_async(folder / "runs.db") as store:
            handles = [await store.start(flow, {}) for _ in range(runs)]
            start = time.perf_counter()
            async with store.worker(flow, concurrency=AT_ONCE):
                for one in handles:
                    await one.result(timeout=LIMIT)
                return time.perf_counter() - start

    return asyncio.run(work())


def answered(folder: str, count: int) -> list[float]:
    """Seconds from an answer, given by another open store, until the step behind it has begun."""
    import keepstep

    begun: list[float] = []
    flow = keepstep.Flow("asking", start="ask")

    @flow.step
    def ask(run: Any, state: Any) -> None:
        run.confirm("Go on?")
        begun.append(time.perf_counter())

    place = Path(folder) / "runs.db"
    waited: list[float] = []
    with keepstep.open(place) as store, keepstep.open(place) as person, store.worker(flow):
        for _ in range(count):
            handle = person.start(flow)
            while not (gates := handle.look().gates):
                time.sleep(0.002)
            time.sleep(0.05)
            start = time.perf_counter()
            person.answer(gates[0], True)
            handle.result(timeout=LIMIT)
            waited.append(begun[-1] - start)
    return waited


HOLDER = """
import sys, time, keepstep
store = keepstep.open(sys.argv[1])
run = store.claim(sys.argv[2])
print("held", flush=True)
time.sleep(3600)
"""


def taken_over(folder: str, count: int) -> list[float]:
    """Seconds from the death of a process that holds a run until a worker of another process has finished it."""
    import keepstep

    place = Path(folder) / "runs.db"
    flow = noop_flow()
    waited: list[float] = []
    with keepstep.open(place) as store:
        for number in range(count):
            handle = store.start(flow, {}, id=f"run-{number}")
            command = [sys.executable, "-c", HOLDER, str(place), handle.id]
            holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            assert holder.stdout is not None
            holder.stdout.readline()
            with store.worker(flow, poll=POLL_SECONDS):
                time.sleep(POLL_SECONDS / 3)
                start = time.perf_counter()
                os.kill(holder.pid, signal.SIGKILL)
                holder.wait()
                handle.result(timeout=LIMIT)
                waited.append(time.perf_counter() - start)
            holder.stdout.close()
    return waited
