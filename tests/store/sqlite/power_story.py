"""A day of work on a SQLite store that is recorded, and the morning after a loss of power."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import apsw

import keepstep
from keepstep.store.sqlite import SqliteStore
from tests.crash.plain_model import Kept, Model, picture, unsound
from tests.crash.scripts import Leave, Step, World
from tests.places import Place
from tests.store.sqlite.power_vfs import Disk, PowerVfs, Recording, write_files

Allowed = dict[str, list[tuple[Kept | None, int]]]
"""Run id → everything that may be found of it (None: nothing), and how many lives it has had then."""

NIGHT_SECONDS = 10_000
"""Longer than any lease."""
NIGHTS = 10
"""Nobody lives as long as that."""


# --- the day ---------------------------------------------------------------------------------------------------------


class PowerPlace(Place):
    """A place whose stores are recorded."""

    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        super().__init__("sqlite", "sync", folder)
        self.recording = Recording(disk)
        self.vfs = PowerVfs(self.recording)
        write_files({} if disk is None else disk.now(), folder)

    def base(self) -> SqliteStore:
        """A store whose writes are recorded; not opened yet."""
        return SqliteStore(str(self.path), self.clock, vfs=self.vfs.name)

    def open(self, url: Any = None, **options: Any) -> keepstep.Store:
        """See `Place.open`."""
        base: Any = self.base()
        return super().open(url or base, **options)

    def close(self) -> None:
        """Nothing is recorded any more: the power is off."""
        self.recording.is_over = True
        super().close()


@contextmanager
def power_place(folder: Path, disk: Disk | None = None) -> Iterator[PowerPlace]:
    place = PowerPlace(folder, disk)
    try:
        yield place
    finally:
        place.close()


@dataclass
class Reopen(Step):
    """Close the store, which takes its log over into the file, and open it again."""

    def do(self, world: World) -> None:
        world.store(self.who).close()
        del world._stores[self.who]
        world.store(self.who)


@dataclass
class Hurry(Step):
    """Commit without waiting for the disk as one has to."""

    synchronous: str

    def do(self, world: World) -> None:
        base: Any = world.store(self.who)._session.store
        writer = base._connections.writer
        writer.set("synchronous", "FULL")  # and it takes it that it is so from now on
        writer.cursor().execute(f"PRAGMA synchronous = {self.synchronous}")


def play(
    recording: Recording, world: World, script: list[Step], model: Model | None = None, before: Allowed | None = None
) -> None:
    """Go through a script, and note down before and after each step what may be found from then on.

    `before`: what else may be found until the first step has returned.
    """
    model = model or Model()
    for step in script:
        after = [one.copy() for one in step.after(model.copy())]
        recording.note(allowing(model, *after, or_else=before))
        step.do(world)
        # No disk is waited for when a claim is given back: until something else is written, the run may be as it was.
        before = allowing(model, or_else=before) if isinstance(step, Leave) else None
        model = after[-1]
        recording.note(allowing(model, or_else=before))


def allowing(*models: Model, or_else: Allowed | None = None) -> Allowed:
    """Any of these models, run by run."""
    or_else = or_else or {}
    names = {name for model in models for name in model.lives} | or_else.keys()
    return {
        name: [*or_else.get(name, ()), *((model.runs.get(name), model.lives.get(name, 0)) for model in models)]
        for name in names
    }


# --- the morning after -----------------------------------------------------------------------------------------------


def wrong_in_the_morning(files: dict[str, bytes], allowed: Allowed, folder: Path) -> list[str]:
    """Whatever somebody has to complain of who opens what the night has left."""
    write_files(files, folder)
    place = Place("sqlite", "sync", folder)
    place.clock.turn(NIGHT_SECONDS * NIGHTS)
    try:
        store = place.open()
        found = picture(store)
        wrong = differences(found, allowed) + unsound(store)
        go_on(store, found)
        wrong += unsound(store)
        store.close()
        return wrong + unsound_file(place.path)
    except (keepstep.KeepstepError, AssertionError) as error:
        return [repr(error)]
    finally:
        place.close()
        shutil.rmtree(folder)


def differences(found: dict[str, Kept], allowed: Allowed) -> list[str]:
    """Every run that is not as it may be."""
    wrong: list[str] = []
    for name in found.keys() | allowed.keys():
        this, these = found.get(name), [kept for kept, _ in allowed.get(name, [(None, 0)])]
        if this not in these:
            wrong.append(f"{name} is {this}, not {' or '.join(map(str, these))}")
    return wrong


def go_on(store: keepstep.Store, found: dict[str, Kept]) -> None:
    """Every run that was found, and a new one, can be saved again."""
    for name, kept in found.items():
        if kept.status != "finished":
            with store.run(name) as run:
                run.save({"another": "day"})
            assert store.look(name).state == {"another": "day"}
    store.save("new", {"a": 1}, workflow="w")
    assert store.at("new").state == {"a": 1}


def unsound_file(path: Path) -> list[str]:
    """What SQLite itself finds wrong with the file."""
    connection = apsw.Connection(str(path))
    try:
        said = [str(line) for (line,) in connection.execute("PRAGMA integrity_check")]
        return [line for line in said if line != "ok"]
    finally:
        connection.close()


def wrong_after_losses(
    recording: Recording, chance: Random, folder: Path, moments: Collection[int] | None = None
) -> list[str]:
    """What is wrong when the power goes at each moment in turn, or at some of them."""
    wrong: list[str] = []
    for at, disk, allowed in mornings(recording):
        if moments is None or at in moments:
            found = wrong_in_the_morning(disk.after_loss(chance), allowed, folder)
            wrong += [f"power lost after event {at} of {len(recording.events)}: {one}" for one in found]
    return wrong


def mornings(recording: Recording) -> Iterator[tuple[int, Disk, Allowed]]:
    """Every moment: its number, the disk, and what may be found."""
    allowed: Allowed = {}
    known = 0
    for at, disk, notes in recording.moments():
        for note in notes[known:]:
            allowed = {**allowed, **note}
        known = len(notes)
        yield at, disk, allowed


def some(chance: Random, first: int, last: int, count: int) -> set[int]:
    """Some of the moments from the first to the last."""
    return set(chance.sample(range(first, last + 1), min(count, last + 1 - first)))
