"""On PostgreSQL. The floor is the same server's: `INSERT` of one row of the same size, and `COMMIT`, by psycopg."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
import psycopg

from benchmarks.conversation import Say, scalars, texts, turn
from benchmarks.floor import Pace, rate, ratio, ratios
from benchmarks.folder import fresh_folder
from benchmarks.fresh import find, in_fresh_process
from benchmarks.many_runs import RUNS, state_of
from benchmarks.peers import DBOS, LANGGRAPH
from benchmarks.row import Row, at_least
from benchmarks.setting import Setting
from benchmarks.small_state import small_state
from benchmarks.working import SERVER, worked
from tests.postgres_server import Server

CHUNK = 50
WORKERS = 8
EMPTY = 5
PEERS = {LANGGRAPH: "benchmarks.peers.langgraph_postgres:converse", DBOS: "benchmarks.peers.dbos:converse"}
FOLDER_MODE = 0o755
"""The server is not run by root, and its folder lies in ours."""

Burst = Callable[[range], Any]


def rows(setting: Setting) -> Iterator[Row]:
    """Saves, claims and a conversation per second, over the floor."""
    one = "one run, 1 KB, all changed: saves over INSERT and COMMIT"
    many = f"{RUNS} runs at once, asyncio tasks: saves over the same"
    claims = f"{WORKERS} workers: claims over the same"
    yield _row(one, "saves", 0.6, setting, save, setting.times(2000, 300))
    yield _row(many, "saves", 2.0, setting, save_in_tasks, setting.times(48, 16))
    yield _row(claims, "claims", 0.5, setting, claim_by_workers, setting.times(800, 160))
    yield from _conversation(setting)
    yield from worked(setting, partial(_rounds, setting), "PostgreSQL, ")


def _row(  # noqa: PLR0917 - a line of the table
    what: str, unit: str, must_reach: float, setting: Setting, function: Callable[..., Pace], count: int
) -> Row:
    paces = [Pace(*one) for one in _rounds(setting, setting.times(5, 1), function, count=count)]
    return Row(
        f"PostgreSQL, {what}",
        f"{rate(paces):,.0f} {unit}/s",
        ratio(paces),
        "of its floor",
        at_least(must_reach),
        rounds=ratios(paces),
    )


def _conversation(setting: Setting) -> Iterator[Row]:
    steps = setting.times(1000, 200)

    def measure(contender: str, rounds: int) -> list[Pace]:
        return [Pace(*one) for one in _rounds(setting, rounds, converse_with, contender=contender, steps=steps)]

    paces = measure(f"{__name__}:converse", setting.times(3, 1))
    peers = setting.beside(PEERS, lambda contender: measure(contender, setting.times(2, 1)))
    told = {name: f"{rate(one):,.0f}/s {ratio(one):.3f}" for name, one in peers.items()}
    what = f"PostgreSQL, conversation of {steps:,} steps: steps over INSERT and COMMIT"
    yield Row(what, f"{rate(paces):,.0f} steps/s", ratio(paces), "of its floor", None, told, ratios(paces))
    if LANGGRAPH in peers:
        times = ratio(paces) / ratio(peers[LANGGRAPH])
        yield Row("  over LangGraph's PostgresSaver", "", times, "times", at_least(20))


def _rounds(setting: Setting, times: int, function: Callable[..., Any], /, **arguments: Any) -> list[Any]:
    """What the function returns in so many fresh processes, each on a server of its own that waits for the disk."""
    found: list[Any] = []
    for _ in range(times):
        with fresh_folder(setting.folder) as folder:
            for one in (setting.folder, folder):
                one.chmod(FOLDER_MODE)
            server = Server(durable=True, folder=str(folder))
            server.start()
            try:
                (folder / SERVER).write_text(server.url)
                found.append(in_fresh_process(function, folder=str(folder), **arguments))
            finally:
                server.remove()
    return found


def race(url: str, payloads: Sequence[bytes], chunk: int, burst: Burst) -> Pace:
    """Take turns with the floor, a chunk each, so that both meet the same moods of the disk."""
    seconds = floor_seconds = 0.0
    with psycopg.connect(url) as floor:
        floor.execute("CREATE TABLE IF NOT EXISTS floor (n bigserial PRIMARY KEY, body bytea)")
        floor.commit()
        for first in range(0, len(payloads), chunk):
            numbers = range(first, min(first + chunk, len(payloads)))
            floor_seconds += _insert(floor, [payloads[number] for number in numbers])
            start = perf_counter()
            burst(numbers)
            seconds += perf_counter() - start
    return Pace(len(payloads), seconds, floor_seconds)


def _insert(floor: psycopg.Connection[Any], payloads: Sequence[bytes]) -> float:
    start = perf_counter()
    for payload in payloads:
        floor.execute("INSERT INTO floor (body) VALUES (%s)", (payload,))
        floor.commit()
    return perf_counter() - start


def save(folder: str, count: int) -> Pace:
    """One run with a small state."""
    import keepstep

    url = (Path(folder) / SERVER).read_text()
    states = [small_state(number) for number in range(count)]
    payloads = [msgspec.msgpack.encode(state) for state in states]
    with keepstep.open(url) as store, store.run("small", "small") as run:

        def burst(numbers: range) -> None:
            for number in numbers:
                run.save(states[number], next="again")

        burst(range(CHUNK))
        pace = race(url, payloads, CHUNK, burst)
        found = store.load("small")
        assert found is not None
        assert found.state == states[-1], "what was saved does not read back"
    return pace


def save_in_tasks(folder: str, count: int) -> Pace:
    """Many runs as tasks of one event loop, each of which saves so often."""
    import keepstep

    url = (Path(folder) / SERVER).read_text()
    payloads = [msgspec.msgpack.encode(state_of(number % RUNS, number // RUNS)) for number in range(RUNS * count)]

    async def opened() -> Any:
        return await keepstep.open_async(url)

    with asyncio.Runner() as runner:
        store = runner.run(opened())
        runs = [runner.run(store.claim(f"run-{run}", "crowd")) for run in range(RUNS)]

        async def one(run: int, numbers: range) -> None:
            for number in numbers:
                await runs[run].save(state_of(run, number), next="again")

        async def everyone(numbers: range) -> None:
            await asyncio.gather(*(one(run, numbers) for run in range(RUNS)))

        runner.run(everyone(range(1)))
        pace = race(url, payloads, RUNS * 8, lambda ns: runner.run(everyone(range(ns.start // RUNS, ns.stop // RUNS))))
        for run in range(RUNS):
            found = runner.run(store.load(f"run-{run}"))
            assert found.state == state_of(run, count - 1), "what was saved does not read back"
        runner.run(store.close())
    return pace


def claim_by_workers(folder: str, count: int) -> Pace:
    """Processes that claim whatever is due, one run after another, until there is nothing."""
    import keepstep

    url = (Path(folder) / SERVER).read_text()
    with keepstep.open(url) as store:
        for number in range(count):
            store.save(f"run-{number}", small_state(number), workflow="small")
    context = multiprocessing.get_context("fork")
    gate, told = context.Barrier(WORKERS + 1), context.Queue()
    workers = [context.Process(target=_claim, args=(url, gate, told)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    gate.wait()
    start = perf_counter()
    claimed = [told.get() for _ in workers]
    seconds = perf_counter() - start
    gate.wait()
    for worker in workers:
        worker.join()
    assert sum(claimed) == count, "not every run was claimed once"
    with psycopg.connect(url) as floor:
        floor.execute("CREATE TABLE floor (n bigserial PRIMARY KEY, body bytea)")
        floor.commit()
        floor_seconds = _insert(floor, [bytes(200)] * count)
    return Pace(count, seconds, floor_seconds)


def _claim(url: str, gate: Any, told: Any) -> None:
    import keepstep

    claimed = 0
    with keepstep.open(url) as store:
        store.claim_due("none")  # connected, and known as an owner
        gate.wait()
        empty = 0
        while empty < EMPTY:  # others may have locked what is left just now
            found = len(store.claim_due("small", limit=1))
            claimed, empty = claimed + found, 0 if found else empty + 1
        told.put(claimed)
        gate.wait()  # closed any earlier, it would give back what others still look for


def converse_with(folder: str, contender: str, steps: int) -> Pace:
    """One conversation beside the floor, in this process; what was said is read back."""
    place = Path(folder)
    url = (place / SERVER).read_text()
    said = texts(steps)
    payloads = [msgspec.msgpack.encode(turn(number, text)) for number, text in enumerate(said)]
    paces: list[Pace] = []

    def work(say: Say) -> None:
        def burst(numbers: range) -> None:
            for one in numbers:
                say(one, said[one])

        paces.append(race(url, payloads, CHUNK, burst))

    assert find(contender)(place, work) == said, "what was saved does not read back"
    return paces[0]


def converse(folder: Path, work: Callable[[Say], None]) -> list[str]:
    """The conversation in keepstep; returns what is found in it after it was closed and opened again."""
    import keepstep

    url = (folder / SERVER).read_text()
    state: dict[str, Any] = {"messages": [], **scalars(0)}
    with keepstep.open(url) as store, store.run("talk", workflow="talk") as run:

        def say(number: int, text: str) -> None:
            state["messages"].append(turn(number, text))
            state.update(scalars(number))
            run.save(state, next="say")

        work(say)
    with keepstep.open(url, read_only=True) as store:
        found = store.load("talk")
    assert found is not None
    assert found.state == state, "the state does not read back"
    return [one["content"] for one in found.state["messages"]]
