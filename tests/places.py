"""Where a test has its store, and what can happen to the processes that use it."""

from __future__ import annotations

import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import keepstep
from keepstep.engine.claims import Claim, close
from keepstep.engine.decisions import decide
from keepstep.log.grow import Draft
from keepstep.log.records import Record, Released
from keepstep.runtime.inline import drive
from keepstep.testing import Clock
from tests.damage import damage_directory, damage_memory, damage_postgres, damage_sqlite
from tests.handles import LOOP, act, open_behind
from tests.postgres_server import SCHEMAS, server_url, with_schema

LEASE_SECONDS = 30.0
_numbers = itertools.count()


class Place:
    """Room for one store of a kind (memory, dir, sqlite, postgres), used in a mode (sync, async)."""

    def __init__(self, kind: str, mode: str, folder: Path) -> None:
        self.kind = kind
        self.mode = mode
        self.folder = folder
        self.clock = Clock()
        self.path = folder / {"dir": "runs", "sqlite": "runs.db"}.get(kind, "nowhere")
        self.schema = SCHEMAS.take() if kind == "postgres" else ""
        self.url = self._url()
        self._opened: list[Any] = []

    def _url(self) -> str:
        if self.kind == "memory":
            return f"memory:place {next(_numbers)}"
        return with_schema(server_url(), self.schema) if self.kind == "postgres" else f"{self.kind}:{self.path}"

    def open(self, url: str | None = None, **options: Any) -> keepstep.Store:
        """Open the store, each time as another owner; it is closed at the end of the test."""
        how = {"clock": self.clock, "lease": LEASE_SECONDS, **options}
        opened: Any = keepstep.open(url or self.url, **how) if self.mode == "sync" else self._open_async(url, how)
        self._opened.append(opened)
        return cast(keepstep.Store, opened)

    def _open_async(self, url: str | None, how: dict[str, Any]) -> Any:
        return open_behind(url or self.url, **how)

    def close(self) -> None:
        """Close what is open."""
        for store in reversed(self._opened):
            with suppress(keepstep.KeepstepError):
                store.close()
        if self.schema:
            SCHEMAS.give_back(self.schema)

    # --- what happens to processes -------------------------------------------------------------------------------

    def freeze(self, store: keepstep.Store) -> None:
        """The process that opened this store has stopped, and its lease has passed; its locks are still there."""
        heart: Any = store._session._engine.ownership._heart
        if heart is not None:
            heart.stop()
        self.clock.turn(LEASE_SECONDS + 1)

    def kill(self, store: keepstep.Store) -> None:
        """The process that opened this store is dead. Where there are no locks, its lease has passed, too."""
        heart: Any = store._session._engine.ownership._heart
        if heart is not None:
            heart.stop()
        session = store._session
        session._closed = True
        if self.mode == "async":
            LOOP.run(cast(Any, session.store.close()))
        else:
            drive(cast(Any, session.store.close()))
        if self.kind in ("memory", "postgres"):
            self.clock.turn(LEASE_SECONDS + 1)

    def beat(self, store: keepstep.Store) -> None:
        """The process that opened this store renews its lease now."""
        heart: Any = store._session._engine.ownership._heart
        heart._heard(heart._renew())

    # --- what has no verb of its own yet -------------------------------------------------------------------------

    def append(self, store: keepstep.Store, run_id: str, *records: Record) -> None:
        """Add records to a run, as somebody who does not hold it."""
        act(store, lambda engine: decide(engine, run_id, lambda view: [Draft(record) for record in records]))

    def leave_to_wait(self, store: keepstep.Store, run: Any, *records: Record) -> None:
        """The holder writes what it waits for, and leaves."""
        self.hold_write(store, run, *records, Released(reason="waits"))
        close(run._claim)

    def hold_write(self, store: keepstep.Store, run: Any, *records: Record) -> None:
        """The holder writes records."""
        claim: Claim = run._claim
        act(store, lambda _: claim.writer.write(lambda row: [Draft(record) for record in records]))

    # --- damage --------------------------------------------------------------------------------------------------

    def damage(self, store: keepstep.Store, run_id: str, seq: int) -> None:
        """One byte of a record's body is another."""
        if self.kind == "memory":
            damage_memory(store._session._beating, run_id, seq)
        elif self.kind == "dir":
            damage_directory(self.path, run_id, seq)
        elif self.kind == "postgres":
            damage_postgres(self.url, run_id, seq)
        else:
            damage_sqlite(self.path, run_id, seq)
