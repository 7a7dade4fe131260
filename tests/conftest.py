"""A store of each kind, through both kinds of handle."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("keepstep.store.conformance")  # before anybody imports it

import keepstep  # noqa: E402
from keepstep.runtime.clock import SystemClock  # noqa: E402
from keepstep.testing import Clock  # noqa: E402
from tests.children import Baton  # noqa: E402
from tests.places import Place  # noqa: E402
from tests.postgres_server import SCHEMAS, stop_shared  # noqa: E402

pytest_plugins = ["keepstep.testing.fixtures"]

settings.register_profile("keepstep", deadline=None)  # no test is about a time
settings.load_profile("keepstep")

KINDS = ("memory", "dir", "sqlite", "postgres")
KINDS_ON_DISK = ("dir", "sqlite")
KINDS_SHARED = (*KINDS_ON_DISK, "postgres")
MODES = ("sync", "async")

FOLDER_IN_MEMORY = "/dev/shm"
"""These tests are about behaviour; what a loss of power does has tests of its own, which need no disk either."""


def _every(kinds: tuple[str, ...], modes: tuple[str, ...]) -> list[str]:
    """Each kind in each mode, but PostgreSQL, whose tests take longest, in one of them per test."""
    return [f"{kind}-{mode}" for kind in kinds if kind != "postgres" for mode in modes] + [
        kind for kind in kinds if kind == "postgres"
    ]


def _place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    kind, _, mode = request.param.partition("-")
    # Which one hangs on the test's name: half of all tests go through each.
    place = Place(kind, mode or MODES[crc32(request.node.name.encode()) % len(MODES)], folder)
    yield place
    place.close()


@pytest.fixture(scope="session", autouse=True)
def _server() -> Iterator[None]:
    """A server that was started for some tests ends with all of them."""
    yield
    SCHEMAS.close()
    stop_shared()


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder, in memory where the system has such a place: there nobody waits for a disk."""
    where = FOLDER_IN_MEMORY if os.access(FOLDER_IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="keepstep-tests-", dir=where) as path:
        yield Path(path)


@pytest.fixture(params=_every(KINDS, MODES))
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    """Room for a store, of every kind and in every mode."""
    yield from _place(request, folder)


@pytest.fixture(params=_every(KINDS_ON_DISK, MODES))
def disk_place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    """The same, on the kinds that are files."""
    yield from _place(request, folder)


@pytest.fixture(params=_every(KINDS_SHARED, MODES))
def shared_place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    """The same, on all kinds that other processes see."""
    yield from _place(request, folder)


@pytest.fixture
def store(place: Place) -> keepstep.Store:
    """An open store, of every kind and in every mode."""
    return place.open()


@pytest.fixture
def clock(place: Place) -> Clock:
    """The clock of the place; time stands still until it is turned."""
    return place.clock


@pytest.fixture(params=KINDS_SHARED)
def shared(request: pytest.FixtureRequest, folder: Path) -> Iterator[Callable[[], keepstep.Store]]:
    """Opens a store that several processes share, by the clock that they share, too."""
    place = Place(request.param, "sync", folder)
    yield lambda **how: place.open(clock=SystemClock(), **how)
    place.close()


@pytest.fixture
def postgres_url(folder: Path) -> Iterator[str]:
    """The URL of an empty store in PostgreSQL."""
    place = Place("postgres", "sync", folder)
    yield place.url
    place.close()


@pytest.fixture(params=KINDS_SHARED)
def shared_url(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The URL of an empty store that processes share."""
    place = Place(request.param, "sync", folder)
    yield place.url
    place.close()


@pytest.fixture
def baton() -> Iterator[Baton]:
    """Lets one process wait for another."""
    baton = Baton()
    yield baton
    baton.close()
