from __future__ import annotations

import pytest

from tests.store.sqlite.growing import SqliteStore, TurnedClock, done, opened


@pytest.fixture
def clock():
    return TurnedClock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


@pytest.fixture
def store(path, clock):
    store: SqliteStore = opened(path, clock)
    yield store
    done(store.close())
