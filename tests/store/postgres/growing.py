"""For the tests of the store in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from keepstep.log.fold import Fold
from keepstep.runtime.inline import drive as done
from keepstep.store.base import Append, Committed, Entry, Outcome
from keepstep.store.conformance.pen import Pen
from keepstep.store.conformance.turned_clock import TurnedClock
from keepstep.store.postgres import PostgresStore
from keepstep.store.postgres.blocking import BlockingPort
from keepstep.store.postgres.port import Step, Values, Wire
from keepstep.store.sealed_rows import seal_row
from tests.damage import Tables

__all__ = ["Pen", "Recording", "Tables", "TurnedClock", "done", "fill", "opened", "outcomes", "session", "write"]

DIGEST = b"d" * 16


def opened(url: str, clock: TurnedClock | None = None, **how: Any) -> PostgresStore:
    store = PostgresStore(url, clock, **how)
    done(store.open())
    return store


def outcomes(store: PostgresStore, *entries: Entry) -> list[Outcome]:
    return done(store.commit(entries))


def write(store: PostgresStore, *entries: Entry) -> list[Append | None]:
    told = outcomes(store, *entries)
    assert all(isinstance(one, Committed) for one in told), told
    return [one.append for one in told if isinstance(one, Committed)]


def session(url: str) -> psycopg.Connection[Any]:
    """Somebody else's session on the same database; it is in a transaction once it has done something."""
    return psycopg.connect(url.partition("?")[0])


class Recording(BlockingPort):
    """Remembers every statement that was sent, with its values."""

    def __init__(self) -> None:
        self.sent: list[Step] = []

    async def connect(self, conninfo: str, seconds: float, *, prepares: bool) -> Any:
        return _RecordingWire(await super().connect(conninfo, seconds, prepares=prepares), self.sent)


class _RecordingWire:
    def __init__(self, wire: Wire, sent: list[Step]) -> None:
        self._wire = wire
        self._sent = sent

    async def send(self, steps: Sequence[Step]) -> list[list[Values]]:
        self._sent += steps
        return await self._wire.send(steps)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


def fill(url: str, runs: int) -> None:
    """So many runs as a fleet leaves them: most of them over, of each other kind some."""
    row = seal_row(Fold(status="ready", workflow="w", seq=1, digest=DIGEST))
    with Tables(url) as tables:
        tables.do(FILL_RUNS, row, DIGEST, runs)
        tables.do(FILL_RECORDS, DIGEST, runs)
        tables.do(FILL_TAGS, runs)
        tables.do("INSERT INTO {}.ledger SELECT id, %s, 1, 1, 'saved' FROM {}.runs", DIGEST)
        tables.do(FILL_OWNERS)
        tables.do(FILL_TOMBSTONES)
        for table in ("runs", "records", "tags", "ledger", "owners", "tombstones"):
            tables.do("VACUUM ANALYZE {}." + table)


FILL_RUNS = """
WITH given AS (SELECT %s::bytea AS row, %s::bytea AS digest, %s::int AS runs)
INSERT INTO {}.runs (id, seq, created_us, changed_us, due_us, asking_us, status, workflow, owner, parent, digest, row)
SELECT convert_to('run ' || n, 'UTF8'), 1, 1700000000000000 + n * 1000, 1700000000000000 + n * 1000 + n %% 77,
  CASE WHEN n %% 100 IN (4, 5) THEN CASE WHEN n %% 1000 = 4 THEN 1 ELSE 9000000000000000 END END,
  CASE WHEN n %% 100 IN (6, 7) THEN 1700000000000000 + n END,
  CASE n %% 100 WHEN 1 THEN 'ready' WHEN 2 THEN 'running' WHEN 3 THEN 'running' WHEN 4 THEN 'sleeping'
    WHEN 5 THEN 'sleeping' WHEN 6 THEN 'paused' WHEN 7 THEN 'paused' WHEN 8 THEN 'failed' ELSE 'finished' END,
  convert_to('flow ' || n %% 19, 'UTF8'),
  CASE WHEN n %% 100 IN (2, 3) THEN convert_to('owner ' || (n / 100) %% 8, 'UTF8') END,
  CASE WHEN n %% 50 = 0 THEN convert_to('run ' || n / 1000, 'UTF8') END,
  given.digest, given.row
FROM given, generate_series(1, given.runs) AS n
"""
FILL_RECORDS = """
WITH given AS (SELECT %s::bytea AS digest, %s::int AS runs)
INSERT INTO {}.records SELECT convert_to('run ' || n, 'UTF8'), 1, given.digest || 'head', 'body'
FROM given, generate_series(1, given.runs) AS n
"""
FILL_TAGS = """
WITH given AS (SELECT %s::int AS runs)
INSERT INTO {}.tags
SELECT convert_to('run ' || n, 'UTF8'), convert_to(tag.name, 'UTF8'), convert_to(tag.value, 'UTF8'),
  1700000000000000 + n * 1000, 1700000000000000 + n * 1000 + n %% 77
FROM given, generate_series(1, given.runs) AS n,
  LATERAL (VALUES ('team', '''' || n %% 5), ('number', n::text)) AS tag (name, value)
WHERE n %% 4 = 0
"""
FILL_OWNERS = """
INSERT INTO {}.owners
SELECT convert_to('owner ' || n, 'UTF8'), 9000000000000000, 1, 'here', n FROM generate_series(0, 6) AS n
"""
FILL_TOMBSTONES = """
INSERT INTO {}.tombstones SELECT convert_to('dead ' || n, 'UTF8'), 1, 1 FROM generate_series(1, 1000) AS n
"""
