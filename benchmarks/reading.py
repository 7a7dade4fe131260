"""Reading the latest state of a long conversation, over decoding the same state's bytes in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, cast

import ormsgpack

from benchmarks.conversation import STEPS, Say, converse, scalars, texts, turn
from benchmarks.fresh import find
from benchmarks.peers import LANGGRAPH, PLAIN
from benchmarks.row import Row, at_most
from benchmarks.setting import Setting
from keepstep.engine.checkpoints import load
from keepstep.log.chain import Stored
from keepstep.runtime.clock import SystemClock
from keepstep.runtime.inline import drive
from keepstep.store.sqlite import SqliteStore

PEERS = {
    LANGGRAPH: ("benchmarks.peers.langgraph:converse", "benchmarks.peers.langgraph:reader"),
    PLAIN: ("benchmarks.peers.langgraph:converse_plainly", "benchmarks.peers.langgraph:reader"),
}
REPEAT = 30
LAST_STEPS = 100


def rows(setting: Setting) -> Iterator[Row]:
    """Time and rows."""
    steps = setting.times(STEPS, 300)
    arguments = {"steps": steps, "repeat": REPEAT}
    found = setting.rounds(
        setting.times(3, 1),
        read_latest,
        writer="benchmarks.conversation:converse",
        reader=f"{__name__}:reader",
        **arguments,
    )
    times = [one["over_decoding"] for one in found]
    peers = setting.beside(
        {name: " ".join(functions) for name, functions in PEERS.items()},
        lambda both: setting.rounds(1, read_latest, writer=both.split()[0], reader=both.split()[1], **arguments)[0],
    )
    yield Row(
        f"read the state at step {steps:,} over decoding its bytes",
        f"{median(one['millis'] for one in found):.2f} ms",
        median(times),
        "times",
        at_most(10),
        {name: f"{one['millis']:.1f} ms {one['over_decoding']:.1f}" for name, one in peers.items()},
        times,
    )
    counts = setting.rounds(1, count_rows, steps=steps)[0]
    yield Row(
        f"  rows read, the most at any of {len(counts)} steps",
        f"{counts[-1]} at step {steps:,}",
        max(counts),
        "rows",
        at_most(80),
        rounds=counts,
    )


def read_latest(folder: str, writer: str, reader: str, steps: int, repeat: int) -> dict[str, float]:
    """Read and decode in turn; the medians."""
    place = Path(folder)
    said = texts(steps)
    find(writer)(place, lambda say: _say_all(say, said))
    encoded = ormsgpack.packb(_state(said))
    reads: list[float] = []
    decodes: list[float] = []
    with find(reader)(place) as (read, heard):
        assert heard(read()) == said, "what was saved does not read back"
        for _ in range(repeat):
            decodes.append(_seconds(lambda: ormsgpack.unpackb(encoded)))
            reads.append(_seconds(read))
    return {"millis": median(reads) * 1e3, "over_decoding": median(reads) / median(decodes)}


@contextmanager
def reader(folder: Path) -> Iterator[tuple[Callable[[], Any], Callable[[Any], list[str]]]]:
    """How keepstep reads the latest state, and what was said in it."""
    import keepstep

    with keepstep.open(folder / "runs.db") as store:
        yield partial(store.load, "talk"), lambda found: [one["content"] for one in found.state["messages"]]


class Counting:
    """A store that counts the rows it gives out."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def pick(self, run_id: str, seqs: Sequence[int]) -> list[Stored]:
        return self._counted(await self._store.pick(run_id, seqs))

    async def records(self, run_id: str, **options: Any) -> list[Stored]:
        return self._counted(await self._store.records(run_id, **options))

    def _counted(self, found: list[Stored]) -> list[Stored]:
        self.rows += len(found)
        return found


def count_rows(folder: str, steps: int) -> list[int]:
    """The rows that reading takes, at each of the last steps of a conversation."""
    import keepstep

    place = Path(folder)
    said = texts(steps)
    converse(place, lambda say: _say_all(say, said))
    counting = Counting(SqliteStore(str(place / "runs.db"), SystemClock()))
    counts: list[int] = []
    with keepstep.open(cast(Any, counting)) as store:
        heads = store.history("talk", limit=LAST_STEPS).items
        for head in reversed(heads):
            counting.rows = 0
            drive(load(store._session.engine, "talk", head.seq))
            counts.append(counting.rows)
    return counts


def _say_all(say: Say, said: Sequence[str]) -> None:
    for number, text in enumerate(said):
        say(number, text)


def _state(said: Sequence[str]) -> dict[str, Any]:
    return {"messages": [turn(number, text) for number, text in enumerate(said)], **scalars(len(said) - 1)}


def _seconds(function: Callable[[], Any]) -> float:
    start = perf_counter()
    kept = function()
    taken = perf_counter() - start
    del kept
    return taken
