"""64 runs at once in one process, 1 KB each, all of it changed at every save: as asyncio tasks, and as threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec

from benchmarks.floor import Pace, race, rate, ratio, ratios
from benchmarks.fresh import find
from benchmarks.peers import DBOS, PLAIN
from benchmarks.row import Row, at_least
from benchmarks.setting import Setting
from benchmarks.small_state import State, small_state

RUNS = 64
SAVES = 16
"""Of each run, between two turns of the floor."""
TURNS = 3

Burst = Callable[[range], Any]
"""Has every run save the states of these numbers, and returns when all are durable."""


def rows(setting: Setting) -> Iterator[Row]:
    """Saves per second of all runs together."""
    yield _row(setting, "asyncio tasks", "save_in_tasks", 2.0, {PLAIN: "benchmarks.peers.langgraph:save_in_tasks"})
    yield _row(setting, "threads", "save_in_threads", 1.0, {DBOS: "benchmarks.peers.dbos:save_in_threads"})


def _row(setting: Setting, how: str, function: str, must_reach: float, peers: dict[str, str]) -> Row:
    turns = setting.times(TURNS, 1)

    def measure(contender: str, rounds: int) -> list[Pace]:
        return [Pace(*one) for one in setting.rounds(rounds, one_crowd, contender=contender, turns=turns)]

    paces = measure(f"{__name__}:{function}", setting.times(7, 2))
    others = setting.beside(peers, lambda contender: measure(contender, setting.times(3, 1)))
    return Row(
        f"{RUNS} runs at once, {how}: saves over floor",
        f"{rate(paces):,.0f} saves/s",
        ratio(paces),
        "of floor",
        at_least(must_reach),
        {name: f"{rate(one):,.0f}/s {ratio(one):.3f}" for name, one in others.items()},
        ratios(paces),
    )


def one_crowd(folder: str, contender: str, turns: int) -> Pace:
    """All runs beside the floor, in this process; every last state is read back."""
    place = Path(folder)
    paces: list[Pace] = []
    saves = SAVES * turns
    payloads = [msgspec.msgpack.encode(state_of(number % RUNS, number // RUNS)) for number in range(RUNS * saves)]

    def work(burst: Burst) -> None:
        burst(range(1))  # every run exists
        paces.append(race(place, payloads, RUNS * SAVES, lambda numbers: burst(_rounds(numbers))))

    found = find(contender)(place, work)
    assert found == [state_of(run, saves - 1) for run in range(RUNS)], "what was saved does not read back"
    return paces[0]


def _rounds(numbers: range) -> range:
    return range(numbers.start // RUNS, numbers.stop // RUNS)


def state_of(run: int, number: int) -> State:
    """The state with this number of one of the runs."""
    return _STATES[run + RUNS * (number % SAVES)] | {"run": run, "number": number}


_STATES = [small_state(number) for number in range(RUNS * SAVES)]


def save_in_tasks(folder: Path, work: Callable[[Burst], None]) -> list[State]:
    """As tasks of one event loop; returns the last states, read after closing."""
    import asyncio

    import keepstep

    path = folder / "runs.db"
    with asyncio.Runner() as runner:
        store = runner.run(_opened(path))
        runs = [runner.run(store.claim(f"run-{run}", "crowd")) for run in range(RUNS)]

        async def one(run: int, numbers: range) -> None:
            for number in numbers:
                await runs[run].save(state_of(run, number), next="again")

        async def everyone(numbers: range) -> None:
            await asyncio.gather(*(one(run, numbers) for run in range(RUNS)))

        work(lambda numbers: runner.run(everyone(numbers)))
        runner.run(store.close())
    with keepstep.open(path, read_only=True) as reader:
        return [_state(reader.load(f"run-{run}")) for run in range(RUNS)]


async def _opened(path: Path) -> Any:
    import keepstep

    return await keepstep.open_async(path)


def save_in_threads(folder: Path, work: Callable[[Burst], None]) -> list[State]:
    """As threads, one per run; returns the last states, read after closing."""
    import keepstep

    path = folder / "runs.db"
    with keepstep.open(path) as store:
        runs = [store.claim(f"run-{run}", "crowd") for run in range(RUNS)]

        def one(run: int, numbers: range) -> None:
            for number in numbers:
                runs[run].save(state_of(run, number), next="again")

        def everyone(numbers: range) -> None:
            threads = [Thread(target=one, args=(run, numbers)) for run in range(RUNS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        work(everyone)
    with keepstep.open(path, read_only=True) as reader:
        return [_state(reader.load(f"run-{run}")) for run in range(RUNS)]


def _state(found: Any) -> State:
    assert found is not None
    return found.state
