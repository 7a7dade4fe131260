"""For information: what SQLite itself makes of the floor, with nothing around it. One row inserted, one changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import msgspec

from benchmarks.floor import Pace, race, rate, ratio, ratios
from benchmarks.row import Row
from benchmarks.setting import Setting
from benchmarks.small_state import small_state

STEPS = 1000
CHUNK = 50
WAYS = {
    "with its defaults": [],
    "with a log (WAL), synchronous=FULL": ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"],
}


def rows(setting: Setting) -> Iterator[Row]:
    """Commits per second: what a store that keeps a log in SQLite could reach at most."""
    for way, pragmas in WAYS.items():
        found = setting.rounds(setting.times(3, 1), commits, pragmas=pragmas, steps=setting.times(STEPS, 300))
        paces = [Pace(*one) for one in found]
        yield Row(
            f"bare SQLite {way}: commits over floor",
            f"{rate(paces):,.0f} commits/s",
            ratio(paces),
            "of floor",
            rounds=ratios(paces),
        )


def commits(folder: str, pragmas: Sequence[str], steps: int) -> Pace:
    """Commits of 1 KB beside the floor."""
    place = Path(folder)
    payloads = [msgspec.msgpack.encode(small_state(number)) for number in range(steps)]
    connection = apsw.Connection(str(place / "bare.db"))
    for statement in (
        *pragmas,
        "CREATE TABLE log (body BLOB)",
        "CREATE TABLE run (n INTEGER)",
        "INSERT INTO run VALUES (0)",
    ):
        connection.execute(statement)
    cursor = connection.cursor()

    def burst(numbers: range) -> None:
        for one in numbers:
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("INSERT INTO log VALUES (?)", (payloads[one],))
            cursor.execute("UPDATE run SET n = ?", (one,))
            cursor.execute("COMMIT")

    pace = race(place, payloads, CHUNK, burst)
    assert [body for (body,) in connection.execute("SELECT body FROM log")] == payloads, (
        "what was written does not read back"
    )
    connection.close()
    return pace
