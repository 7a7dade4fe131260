"""Opening a run with a long log, over opening one with a short log."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.row import Row, at_most
from benchmarks.setting import Setting
from benchmarks.words import message

SHORT = 100
LONG = 100_000
AT_ONCE = 500
REPEAT = 128
"""After each, both runs are saved once more, so that both are met at every distance from their last key frame."""
NOTES = message(0)


def rows(setting: Setting) -> Iterator[Row]:
    """To claim and load it, and to look at it."""
    records = setting.times(LONG, 10_000)
    found = setting.rounds(1, open_both, records=records, repeat=setting.times(REPEAT, 64))[0]
    for how, what in (("claim", "open"), ("look", "  look at it")):
        short, long = found[how]
        yield Row(
            f"{what}: a run with {records:,} records over one with {SHORT}",
            f"{long * 1e3:.2f} ms",
            long / short,
            "times",
            at_most(1.5),
        )


def open_both(folder: str, records: int, repeat: int) -> dict[str, tuple[float, float]]:
    """Open the short run and the long one in turn; the median seconds of each."""
    import keepstep

    path = Path(folder) / "runs.db"
    counts = {"short": SHORT, "long": records}
    asyncio.run(_fill(path, counts))
    with keepstep.open(path) as store:
        assert all(store.look(run_id).seq >= count for run_id, count in counts.items()), "a log is too short"

        def claim(run_id: str) -> None:
            with store.run(run_id) as run:
                assert run.state["notes"] == NOTES, "the state does not read back"

        seconds: dict[str, dict[str, list[float]]] = {"claim": defaultdict(list), "look": defaultdict(list)}
        for number in range(repeat):
            for run_id in counts:
                seconds["claim"][run_id].append(_seconds(claim, run_id))
                seconds["look"][run_id].append(_seconds(store.look, run_id))
                store.save(run_id, state(-number))
    return {how: (median(found["short"]), median(found["long"])) for how, found in seconds.items()}


def state(number: int) -> dict[str, Any]:
    """A state of 1 KB, in which a number changes."""
    return {"number": number, "notes": NOTES}


def _seconds(opening: Callable[[str], Any], run_id: str) -> float:
    start = perf_counter()
    opening(run_id)
    return perf_counter() - start


async def _fill(path: Path, records: dict[str, int]) -> None:
    """Runs with so many records. Saves at once share commits, which makes the long one in seconds."""
    import keepstep

    async with keepstep.open_async(path) as store:
        for run_id, count in records.items():
            async with store.run(run_id, "long") as run:
                for first in range(0, count, AT_ONCE):
                    numbers = range(first, min(first + AT_ONCE, count))
                    await asyncio.gather(*(run.save(state(number)) for number in numbers))
