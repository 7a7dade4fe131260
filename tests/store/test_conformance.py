"""Every embedded store does what every store has to do."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from pathlib import Path
from typing import Any, cast

import pytest

pytest.register_assert_rewrite("keepstep.store.conformance")

from keepstep.store.base import Store  # noqa: E402 - after the rewriting of what it imports
from keepstep.store.conformance import StoreConformance, TurnedClock  # noqa: E402
from keepstep.store.conformance.bench import drive  # noqa: E402
from keepstep.store.directory import DirectoryStore  # noqa: E402
from keepstep.store.memory import MemoryStore  # noqa: E402
from keepstep.store.sqlite import SqliteStore  # noqa: E402


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
