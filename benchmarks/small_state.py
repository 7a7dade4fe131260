"""A small state: 1 KB, all of it changed at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.floor import Pace, race, rate, ratio, ratios
from benchmarks.fresh import find
from benchmarks.peers import DBOS, PLAIN
from benchmarks.row import Row, at_least
from benchmarks.setting import Setting
from benchmarks.words import message

STEPS = 2000
CHUNK = 50
PEERS = {PLAIN: "benchmarks.peers.langgraph:save_small", DBOS: "benchmarks.peers.dbos:save_small"}

State = dict[str, Any]
Save = Callable[[State], None]


def rows(setting: Setting) -> Iterator[Row]:
    """Saves per second."""
    steps = setting.times(STEPS, 400)

    def measure(contender: str, rounds: int) -> list[Pace]:
        return [Pace(*one) for one in setting.rounds(rounds, one_run, contender=contender, steps=steps)]

    paces = measure(f"{__name__}:save_small", setting.times(7, 2))
    peers = setting.beside(PEERS, lambda contender: measure(contender, setting.times(3, 1)))
    yield Row(
        "small state, 1 KB, all changed: saves over floor",
        f"{rate(paces):,.0f} saves/s",
        ratio(paces),
        "of floor",
        at_least(0.50),
        {name: f"{rate(one):,.0f}/s {ratio(one):.3f}" for name, one in peers.items()},
        ratios(paces),
    )


def small_state(number: int) -> State:
    """A state of 1 KB that has nothing in common with the one before but its keys."""
    return {"number": number, "notes": message(number, 900), "cost": number * 0.0125, "todo": message(-number, 80)}


def one_run(folder: str, contender: str, steps: int) -> Pace:
    """One run beside the floor, in this process; the last state is read back."""
    place = Path(folder)
    states = [small_state(number) for number in range(1, steps + 1)]
    payloads = [msgspec.msgpack.encode(state) for state in states]
    paces: list[Pace] = []

    def work(save: Save) -> None:
        def burst(numbers: range) -> None:
            for one in numbers:
                save(states[one])

        paces.append(race(place, payloads, CHUNK, burst))

    found = find(contender)(place, work)
    assert found == states[-1], "what was saved does not read back"
    return paces[0]


def save_small(folder: Path, work: Callable[[Save], None]) -> State:
    """The run in keepstep; returns the last state, read after closing."""
    import keepstep

    path = folder / "runs.db"
    with keepstep.open(path) as store, store.run("small", workflow="small") as run:
        work(lambda state: run.save(state, next="again") and None)
    with keepstep.open(path, read_only=True) as store:
        found = store.load("small")
    assert found is not None
    return found.state
