"""A conversation: each step adds one message of 1 KB to a list in the state, changes three small scalars, and saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from benchmarks.floor import Pace, race, rate, ratio, ratios
from benchmarks.folder import bytes_in
from benchmarks.fresh import find
from benchmarks.peers import DBOS, LANGGRAPH, PLAIN
from benchmarks.row import Row, at_least, at_most
from benchmarks.setting import Setting
from benchmarks.table import number
from benchmarks.words import message

STEPS = 1000
CHUNK = 50
PEERS = {
    LANGGRAPH: "benchmarks.peers.langgraph:converse",
    PLAIN: "benchmarks.peers.langgraph:converse_plainly",
    DBOS: "benchmarks.peers.dbos:converse",
}

Say = Callable[[int, str], None]


def rows(setting: Setting) -> Iterator[Row]:
    """Steps per second, and what lies on the disk afterwards."""
    steps = setting.times(STEPS, 300)

    def measure(contender: str, rounds: int) -> tuple[list[Pace], float]:
        found = setting.rounds(rounds, one_conversation, contender=contender, steps=steps)
        return [Pace(*one["pace"]) for one in found], median(one["disk"] for one in found)

    paces, disk = measure(f"{__name__}:converse", setting.times(7, 2))
    peers = setting.beside(PEERS, lambda contender: measure(contender, setting.times(3, 1)))
    yield Row(
        f"conversation of {steps:,} steps: steps over floor",
        f"{rate(paces):,.0f} steps/s",
        ratio(paces),
        "of floor",
        at_least(0.40),
        {name: f"{rate(one):,.0f}/s {ratio(one):.3f}" for name, (one, _) in peers.items()},
        ratios(paces),
    )
    yield Row(
        "  bytes on disk after close over bytes of all messages",
        f"{disk * sum(map(len, texts(steps))) / 1e6:.2f} MB",
        disk,
        "times",
        at_most(1.5),
        {name: number(one) for name, (_, one) in peers.items()},
    )


def one_conversation(folder: str, contender: str, steps: int) -> dict[str, Any]:
    """One conversation beside the floor, in this process; what was said is read back."""
    place = Path(folder)
    said = texts(steps)
    payloads = [msgspec.msgpack.encode(turn(number, text)) for number, text in enumerate(said)]
    paces: list[Pace] = []

    def work(say: Say) -> None:
        def burst(numbers: range) -> None:
            for one in numbers:
                say(one, said[one])

        paces.append(race(place, payloads, CHUNK, burst))

    store = place / "store"
    store.mkdir()
    converse = find(contender)
    heard = converse(store, work)
    assert heard == said, "what was saved does not read back"
    disk = bytes_in(store) / sum(map(len, said))
    return {"pace": paces[0], "disk": disk}


def texts(steps: int) -> list[str]:
    """What is said, step by step."""
    return [message(number) for number in range(steps)]


def turn(number: int, text: str) -> dict[str, Any]:
    """One message, as plain data."""
    return {"id": f"message-{number:06}", "role": ("user", "assistant")[number % 2], "content": text}


def scalars(number: int) -> dict[str, Any]:
    """What changes at every step besides."""
    return {"turn": number, "cost": number * 0.0125, "phase": ("plan", "act", "check")[number % 3]}


def converse(folder: Path, work: Callable[[Say], None]) -> list[str]:
    """The conversation in keepstep; returns what is found in it after it was closed and opened again."""
    import keepstep

    path = folder / "runs.db"
    with keepstep.open(path) as store, store.run("talk", workflow="talk") as run:
        state: dict[str, Any] = {"messages": [], **scalars(0)}

        def say(number: int, text: str) -> None:
            state["messages"].append(turn(number, text))
            state.update(scalars(number))
            run.save(state, next="say")

        work(say)
    with keepstep.open(path, read_only=True) as store:
        found = store.load("talk")
    assert found is not None, "the state is not there"
    assert found.state == state, "the state does not read back"
    return [one["content"] for one in found.state["messages"]]
