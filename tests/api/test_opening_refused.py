"""Opening where the operating system says no: rights that are missing, and a disk without space."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

import pytest

import keepstep
from tests.rights import as_nobody, small_disk

on_disk = pytest.mark.parametrize("form", ["{}/runs.db", "dir:{}/runs"])


def names(folder):
    return sorted(one.name for one in folder.iterdir())


# --- permissions -----------------------------------------------------------------------------------------------------


@on_disk
def test_everything_that_is_created_is_its_owners_alone(folder, opened, form):
    before = os.umask(0)
    try:
        store = opened(form.format(folder))
        run = store.claim("r", "w")
        run.save({"n": 1})
        store.backup(folder / "copy")
        made = list(folder.rglob("*"))
    finally:
        os.umask(before)

    assert len(made) > 5
    assert {one for one in made if stat.S_IMODE(one.stat().st_mode) != (0o700 if one.is_dir() else 0o600)} == set()


@on_disk
def test_a_folder_without_permission_is_told(folder, form):
    folder.chmod(0o755)
    place = form.format(folder)

    said = as_nobody(lambda: keepstep.open(place))

    assert said.startswith("CannotOpen: ")
    assert str(folder) in said
    assert "ermission" in said
    assert names(folder) == []


@on_disk
def test_a_store_that_belongs_to_somebody_else_is_not_taken_for_an_empty_one(folder, form):
    folder.chmod(0o755)
    place = form.format(folder)
    with keepstep.open(place) as store:
        store.save("r", {"n": 1}, workflow="w")

    for read_only in (False, True):
        said = as_nobody(lambda how=read_only: keepstep.open(place, read_only=how).load("r"))
        assert said.startswith("CannotOpen: ")
        assert "ermission" in said


@on_disk
def test_a_store_that_may_only_be_read_is_opened_for_reading_only(folder, form):
    folder.chmod(0o755)
    place = form.format(folder)
    with keepstep.open(place) as store:
        store.save("r", {"n": 1}, workflow="w")
    for one in folder.rglob("*"):
        one.chmod(0o755 if one.is_dir() else 0o644)

    assert as_nobody(lambda: keepstep.open(place)).startswith("CannotOpen: ")
    assert as_nobody(lambda: keepstep.open(place, read_only=True).load("r").state) == "gives {'n': 1}"


# --- a full disk -----------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(folder):
    with small_disk(folder) as place:
        yield place


def fill(disk):
    """Leave no byte free; gives the file that has taken them."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return ballast


@on_disk
def test_a_store_is_not_half_made_on_a_full_disk(disk, opened, form):
    ballast = fill(disk)

    with pytest.raises((keepstep.CannotOpen, keepstep.StoreFull), match="space"):
        opened(form.format(disk))

    ballast.unlink()
    assert opened(form.format(disk)).save("r", {"n": 1}, workflow="w") == 1


@on_disk
def test_what_was_saved_outlives_a_full_disk(disk, opened, form):
    store = opened(form.format(disk))
    store.save("r", {"n": 1}, workflow="w")
    ballast = fill(disk)

    with pytest.raises(keepstep.StoreFull, match="nothing was written"):
        store.save("r", {"n": 2, "text": os.urandom(100_000)})
    assert store.load("r").state == {"n": 1}

    ballast.unlink()
    assert store.save("r", {"n": 2}) == 2
    assert store.verify("r").ok
