"""Every embedded store does what every store has to do."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from keepstep.store.base import Store
from keepstep.store.conformance import StoreConformance, TurnedClock
from keepstep.store.conformance.bench import drive
from keepstep.store.directory import DirectoryStore
from keepstep.store.memory import MemoryStore
from keepstep.store.postgres import PostgresStore
from keepstep.store.sqlite import SqliteStore
from tests.postgres_server import SCHEMAS, server_url, with_schema


class TestMemory(StoreConformance):
    def open_store(self, clock: TurnedClock) -> Store:
        self.name = uuid.uuid4().hex
        return MemoryStore(clock, self.name)

    def reopen(self, store: Store) -> Store:
        return MemoryStore(self.clock, self.name)


class Threaded:
    """A store that suspends: each call does its work in another thread."""

    blocking = False

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*arguments: Any, **named: Any) -> Any:
            return await asyncio.to_thread(lambda: drive(method(*arguments, **named)))

        return call


class TestMemoryThatSuspends(TestMemory):
    """The suite itself drives stores of both kinds."""

    def open_store(self, clock: TurnedClock) -> Store:
        return cast("Store", Threaded(super().open_store(clock)))

    def reopen(self, store: Store) -> Store:
        return cast("Store", Threaded(super().reopen(store)))


class OnDisk(StoreConformance):
    kind: type[DirectoryStore | SqliteStore]

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        self.count = 0

    def open_store(self, clock: TurnedClock) -> Store:
        self.count += 1
        self.path = str(self.folder / f"store {self.count}")
        return self.kind(self.path, clock)

    def reopen(self, store: Store) -> Store:
        return self.kind(self.path, self.clock)

    def reopen_read_only(self, store: Store) -> Store:
        return self.kind(self.path, self.clock, read_only=True)

    def place_for_backup(self) -> str:
        return str(self.folder / "backup")

    def open_backup(self, target: str) -> Store:
        return self.kind(target, self.clock)


class TestDirectory(OnDisk):
    kind = DirectoryStore


class TestSqlite(OnDisk):
    kind = SqliteStore


class TestPostgres(StoreConformance):
    @pytest.fixture(autouse=True)
    def place(self) -> Iterator[None]:
        self.schemas: list[str] = []
        yield
        for schema in self.schemas:
            SCHEMAS.give_back(schema)

    def make(self, clock: TurnedClock, **how: Any) -> Store:
        return PostgresStore(with_schema(server_url(), self.schemas[-1], **self.options), clock, **how)

    options: ClassVar[dict[str, str]] = {}

    def open_store(self, clock: TurnedClock) -> Store:
        self.schemas.append(SCHEMAS.take())
        return self.make(clock)

    def reopen(self, store: Store) -> Store:
        return self.make(self.clock)

    def reopen_read_only(self, store: Store) -> Store:
        return self.make(self.clock, read_only=True)


class TestPostgresOnALoop(TestPostgres):
    def make(self, clock: TurnedClock, **how: Any) -> Store:
        return cast("PostgresStore", super().make(clock, **how)).on_loop()


class TestPostgresBehindAPooler(TestPostgres):
    options: ClassVar[dict[str, str]] = {"pooler": "transaction"}
