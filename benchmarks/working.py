"""The worker: no-op steps per second, and how soon a run goes on that was answered, or whose worker died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import peers
from benchmarks.floor import Floor
from benchmarks.folder import ROOT
from benchmarks.fresh import find
from benchmarks.row import Row, at_most
from benchmarks.setting import Setting

RUNS = 100
STEPS = 10
AT_ONCE = 8
POLL_SECONDS = 1.0
LIMIT = 120
"""Seconds; only what is broken takes so long."""

LEASE_SECONDS = 2.0
"""Of the process that dies: where no lock tells of its death, its run is free when this has passed."""
SERVER = "server"
"""A file in the folder of a measure with the URL of a PostgreSQL database; without it, SQLite is used."""

OURS = "benchmarks.working:carry_in_threads"
ON_LOOP = "benchmarks.working:carry_in_tasks"
CONTENDERS = {peers.DBOS: "benchmarks.peers.dbos:carry_steps"}


def rows(setting: Setting) -> Iterator[Row]:
    """Steps per second of runs that were started before, and two times of waiting."""
    yield from worked(setting, setting.rounds)


def worked(setting: Setting, in_rounds: Callable[..., list[Any]], on: str = "") -> Iterator[Row]:
    """The same on any store; `in_rounds` takes a measure where that is."""
    runs = setting.times(RUNS, 20)

    def measure(contender: str) -> list[list[float]]:
        return in_rounds(setting.times(5, 2), carried, contender=contender, runs=runs)

    found = {name: measure(name) for name in (OURS, ON_LOOP)}
    others = setting.beside(CONTENDERS, measure)
    told = {name: f"{_rate(one):,.0f} steps/s, {_ratio(one):.2f}" for name, one in others.items()}
    for name, how in ((OURS, "threads"), (ON_LOOP, "tasks of one loop")):
        yield Row(
            f"{on}worker, {AT_ONCE} at once in {how}: no-op steps per second over floor",
            f"{_rate(found[name]):,.0f} steps/s",
            _ratio(found[name]),
            "of floor",
            peers=told,
            rounds=[steps / floor for steps, floor in found[name]],
        )
    waited = in_rounds(1, answered, count=setting.times(50, 5))[0]
    yield _waiting(f"{on}from an answer until its run goes on", waited, 50)
    waited = in_rounds(1, taken_over, count=setting.times(5, 1))[0]
    what = f"{on}from a worker's SIGKILL until its run goes on (lease {LEASE_SECONDS:g} s, poll {POLL_SECONDS:g} s)"
    yield _waiting(what, waited, (LEASE_SECONDS + POLL_SECONDS) * 1000)


def _waiting(what: str, seconds: list[float], most_ms: float) -> Row:
    middle = median(seconds)
    return Row(what, f"{middle * 1000:,.0f} ms", middle * 1000, "ms", at_most(most_ms), rounds=seconds)


def place_in(folder: Path) -> str:
    """Where the store of a measure is."""
    server = folder / SERVER
    return server.read_text() if server.exists() else str(folder / "runs.db")


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
    with keepstep.open(place_in(folder)) as store:
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
        async with keepstep.open_async(place_in(folder)) as store:
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

    place = place_in(Path(folder))
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
store = keepstep.open(sys.argv[1], lease=float(sys.argv[3]))
run = store.claim(sys.argv[2])
print("held", flush=True)
time.sleep(3600)
"""


def taken_over(folder: str, count: int) -> list[float]:
    """Seconds from the death of a process that holds a run until a worker of another process has finished it."""
    import keepstep

    place = place_in(Path(folder))
    flow = noop_flow()
    waited: list[float] = []
    with keepstep.open(place) as store:
        for number in range(count):
            handle = store.start(flow, {}, id=f"run-{number}")
            command = [sys.executable, "-c", HOLDER, place, handle.id, str(LEASE_SECONDS)]
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
