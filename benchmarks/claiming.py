"""Claiming a small run, loading its state, and releasing it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.floor import Pace, race, rate, ratio, ratios
from benchmarks.row import Row, at_least
from benchmarks.setting import Setting
from benchmarks.small_state import small_state

RUNS = 50
CLAIMS = 1000


def rows(setting: Setting) -> Iterator[Row]:
    """Claims per second. Each is two commits, so half the floor is what could be reached at most."""
    found = setting.rounds(setting.times(7, 2), claims, count=setting.times(CLAIMS, 200))
    paces = [Pace(*one) for one in found]
    yield Row(
        "claim + load + release of a small run: per second over floor",
        f"{rate(paces):,.0f} claims/s",
        ratio(paces),
        "of floor",
        at_least(0.25),
        rounds=ratios(paces),
    )


def claims(folder: str, count: int) -> Pace:
    """Claim small runs in turn, beside the floor."""
    import keepstep

    place = Path(folder)
    states = [small_state(number) for number in range(RUNS)]
    with keepstep.open(place / "runs.db") as store:
        for number, state in enumerate(states):
            store.save(f"run-{number}", state, workflow="small")

        def claim(numbers: range) -> None:
            for one in numbers:
                with store.run(f"run-{one % RUNS}") as run:
                    assert run.state == states[one % RUNS], "the state does not read back"

        before = store.size().heads
        claim(range(RUNS))
        written = (store.size().heads - before) // RUNS
        pace = race(place, [bytes(written)] * count, RUNS, claim)
        assert all(head.status == "ready" for head in store.runs(limit=RUNS).items)
    return pace
