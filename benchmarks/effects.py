"""Calls to the outside, kept in the ledger: one after another, many at once, and found again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.floor import Pace, race, rate, ratio, ratios
from benchmarks.row import Row, at_least, at_most
from benchmarks.setting import Setting
from benchmarks.words import message

CALLS = 1000
CHUNK = 50
AT_ONCE = 64
TURNS = 8
FINISHED = 10_000
OPENED = 15
RECORD_BYTES = 300
"""About what one of the two records of an effect takes."""


def rows(setting: Setting) -> Iterator[Row]:
    """Effects per second, and how long it takes to find them again."""
    calls = setting.times(CALLS, 200)
    paces = [Pace(*one) for one in setting.rounds(setting.times(5, 2), one_by_one, calls=calls)]
    yield Row(
        "once, one after another: calls over floor",
        f"{rate(paces):,.0f} calls/s",
        ratio(paces),
        "of floor",
        at_least(0.25),
        rounds=ratios(paces),
    )
    paces = [Pace(*one) for one in setting.rounds(setting.times(5, 2), all_at_once, turns=setting.times(TURNS, 2))]
    yield Row(
        f"  {AT_ONCE} once at once in one run: calls over floor",
        f"{rate(paces):,.0f} calls/s",
        ratio(paces),
        "of floor",
        at_least(1.0),
        rounds=ratios(paces),
    )
    finished = setting.times(FINISHED, 1000)
    found = setting.rounds(1, replay, finished=finished, repeat=OPENED)[0]
    yield Row(
        f"  opening a run with {finished:,} finished effects",
        f"{found['open'] * 1e3:.2f} ms",
        found["open"] * 1e3,
        "ms",
        at_most(5),
    )
    yield Row("  a call that is found again", f"{found['call'] * 1e6:.0f} us", found["call"] * 1e6, "us", at_most(40))


def tool(text: str) -> str:
    """Something that takes no time."""
    return text


def one_by_one(folder: str, calls: int) -> Pace:
    """Calls in a row, beside the floor; every one is found again."""
    import keepstep

    place, texts = Path(folder), [message(number, 200) for number in range(calls)]
    with keepstep.open(place / "runs.db") as store, store.run("r", workflow="effects") as run:

        def call(numbers: range) -> None:
            for number in numbers:
                run.using(key=str(number)).once(tool, texts[number])

        pace = race(place, [bytes(RECORD_BYTES)] * calls, CHUNK, call)
        assert [one.result for one in store.effects("r")] == texts, "an effect is missing"
    return pace


def all_at_once(folder: str, turns: int) -> Pace:
    """Many calls of one run at the same time, as tasks of one loop."""
    import keepstep

    place, count = Path(folder), AT_ONCE * turns
    with asyncio.Runner() as runner:

        async def opened() -> Any:
            return await keepstep.open_async(place / "runs.db")

        store = runner.run(opened())
        run = runner.run(store.claim("r", "effects"))

        async def same(number: int) -> int:
            return number

        async def call(numbers: range) -> None:
            await run.gather(*(run.using(key=str(number)).once(same, number) for number in numbers))

        pace = race(place, [bytes(RECORD_BYTES)] * count, AT_ONCE, lambda numbers: runner.run(call(numbers)))
        assert len(runner.run(store.effects("r"))) == count, "an effect is missing"
        runner.run(store.close())
    return pace


def replay(folder: str, finished: int, repeat: int) -> dict[str, float]:
    """Open a run that has done much, and go through all of it again."""
    import keepstep

    path = Path(folder) / "runs.db"
    asyncio.run(_fill(path, finished))
    opens: list[float] = []
    calls: list[float] = []
    with keepstep.open(path) as store:
        for _ in range(repeat):
            start = perf_counter()
            run = store.claim("r")
            opens.append(perf_counter() - start)
            start = perf_counter()
            for number in range(500):
                assert run.using(key=str(number)).once(tool, str(number)) == str(number)
            calls.append((perf_counter() - start) / 500)
            run.close()
    return {"open": median(opens), "call": median(calls)}


async def _fill(path: Path, finished: int) -> None:
    import keepstep

    async with keepstep.open_async(path) as store, store.run("r", workflow="effects") as run:
        for first in range(0, finished, 500):
            numbers = range(first, min(first + 500, finished))
            await run.gather(*(run.using(key=str(number)).once(tool, str(number)) for number in numbers))
