"""A store of each kind, through both kinds of handle."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import keepstep
from keepstep.runtime.clock import SystemClock
from keepstep.testing import Clock
from tests.children import Baton
from tests.places import Place

pytest_plugins = ["keepstep.testing.fixtures"]

settings.register_profile("keepstep", deadline=None)  # no test is about a time
settings.load_profile("keepstep")

KINDS = ("memory", "dir", "sqlite")
KINDS_ON_DISK = ("dir", "sqlite")
MODES = ("sync", "async")

FOLDER_IN_MEMORY = "/dev/shm"
"""These tests are about behaviour; what a loss of power does has tests of its own, which need no disk either."""


def _every(kinds: tuple[str, ...], modes: tuple[str, ...]) -> list[str]:
    return [f"{kind}-{mode}" for kind in kinds for mode in modes]


def _place(name: str, folder: Path) -> Iterator[Place]:
    kind, mode = name.split("-")
    place = Place(kind, mode, folder)
    yield place
    place.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder, in memory where the system has such a place: there nobody waits for a disk."""
    where = FOLDER_IN_MEMORY if os.access(FOLDER_IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="keepstep-tests-", dir=where) as path:
        yield Path(path)


@pytest.fixture(params=_every(KINDS, MODES))
def place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    """Room for a store, of every kind and in every mode."""
    yield from _place(request.param, folder)


@pytest.fixture(params=_every(KINDS_ON_DISK, MODES))
def disk_place(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    """The same, on the kinds that other processes see."""
    yield from _place(request.param, folder)


@pytest.fixture
def store(place: Place) -> keepstep.Store:
    """An open store, of every kind and in every mode."""
    return place.open()


@pytest.fixture
def clock(place: Place) -> Clock:
    """The clock of the place; time stands still until it is turned."""
    return place.clock


@pytest.fixture(params=KINDS_ON_DISK)
def shared(request: pytest.FixtureRequest, folder: Path) -> Iterator[Callable[[], keepstep.Store]]:
    """Opens a store that several processes share, by the clock that they share, too."""
    place = Place(request.param, "sync", folder)
    yield lambda **how: place.open(clock=SystemClock(), **how)
    place.close()


@pytest.fixture
def baton() -> Iterator[Baton]:
    """Lets one process wait for another."""
    baton = Baton()
    yield baton
    baton.close()
