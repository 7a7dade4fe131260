"""What was committed is there after kills and losses of power, and what was not is there whole or not at all."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from keepstep.log.chain import Walk
from keepstep.log.records import Pruned
from keepstep.store.base import Append, Query, Store
from keepstep.store.conformance.bench import drive
from keepstep.store.conformance.pen import Pen, pen_on
from keepstep.store.conformance.turned_clock import TurnedClock
from keepstep.store.directory import DirectoryStore
from keepstep.store.memory import MemoryStore
from tests.store.power_files import PowerFiles, PowerLoss

IDS = ("a", "B/b", "c" * 200)


class Deed(NamedTuple):
    """A transaction: a batch, or the deletion of a run."""

    batch: tuple[Append, ...] = ()
    delete: str | None = None

    def do(self, store: Store) -> None:
        if self.delete is not None:
            drive(store.delete(self.delete, lambda view: None))
        if self.batch:
            drive(store.commit(self.batch))

    def only(self, run_ids: set[str]) -> Deed:
        batch = tuple(one for one in self.batch if one.run_id in run_ids)
        return Deed(batch, self.delete if self.delete in run_ids else None)


def state(store: Store, run_id: str) -> object:
    view = drive(store.view(run_id))
    return view.row, view.buried, drive(store.records(run_id)), drive(store.effects(run_id))


def replay(deeds: list[Deed]) -> MemoryStore:
    store = MemoryStore(TurnedClock())
    for deed in deeds:
        deed.do(store)
    return store


class Story:
    """Random deeds, a process that is killed, another that goes on, and then the power goes."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = Random(seed)
        self.clock = TurnedClock()
        self.files = PowerFiles(self.chance)
        self.path = folder / "store"
        self.image = folder / "image"
        self.done: list[Deed] = []
        self.maybe: dict[str, list[object]] = {}
        """Of runs whose last write was never confirmed: how they may look."""

    def deed(self) -> Deed:
        memory = replay(self.done)
        run_ids = self.chance.sample(IDS, self.chance.randint(1, len(IDS)))
        if self.chance.random() < 0.15:
            return Deed(delete=run_ids[0])
        return Deed(tuple(one for run_id in run_ids for one in self._appends(memory, run_id)))

    def _appends(self, memory: MemoryStore, run_id: str) -> list[Append]:
        view = drive(memory.view(run_id))
        pen: Pen = pen_on(view, self.clock)
        if view.row is None:
            return [pen.open(buried=view.buried, body=self._body())]
        if self.chance.random() < 0.2:
            reach = (1, self.chance.randint(1, pen.row.seq))
            return [pen.append(Pruned(dropped=[reach]), dropped=[reach])]
        return [pen.save(self._body()) for _ in range(self.chance.randint(1, 2))]

    def _body(self) -> bytes:
        return self.chance.randbytes(self.chance.choice((0, 3, 200, 9000)))

    def live(self) -> None:
        """One process: opens the store, and does deeds until it is killed."""
        store = DirectoryStore(self.path, self.clock, files=self.files)
        deed = Deed()
        try:
            drive(store.open())
            self._look(store)
            for _ in range(12):
                deed = self.deed()
                deed.do(store)
                self.done.append(deed)
                for run_id in self._touched(deed):
                    self.maybe.pop(run_id, None)
        except PowerLoss:
            after = replay([*self.done, deed])
            before = replay(self.done)
            for run_id in self._touched(deed):
                self.maybe.setdefault(run_id, [state(before, run_id)]).append(state(after, run_id))
            self.pending = deed

    def _touched(self, deed: Deed) -> set[str]:
        return {one.run_id for one in deed.batch} | ({deed.delete} if deed.delete else set())

    def _look(self, store: Store) -> None:
        """Another process finds what the killed one left, and believes it."""
        if not self.maybe:
            return
        written: set[str] = set()
        for run_id, states in self.maybe.items():
            found = state(store, run_id)
            assert found in states
            if found == states[-1] and found != states[0]:
                written.add(run_id)
        self.done.append(self.pending.only(written))

    def check(self) -> None:
        """The morning after."""
        self.files.image(self.path, self.image)
        if not (self.image / "keepstep.json").exists():
            assert not self.done
        store = DirectoryStore(self.image, self.clock)
        drive(store.open())
        memory = replay(self.done)
        for run_id in IDS:
            allowed = self.maybe.get(run_id, [state(memory, run_id)])
            assert state(store, run_id) in allowed
            walk = Walk(run_id)
            assert not [wrong for one in drive(store.records(run_id)) for wrong in walk.step(one)[1]]
        self._go_on(store)
        drive(store.close())
        self.files.close_all()

    def _go_on(self, store: Store) -> None:
        for run_id in IDS:
            view = drive(store.view(run_id))
            pen = pen_on(view, self.clock)
            append = pen.save() if view.row is not None else pen.open(buried=view.buried)
            (outcome,) = drive(store.commit([append]))
            assert type(outcome).__name__ == "Committed"
        assert sorted(row.run_id for row in drive(store.rows(Query(), None, 9)).rows) == sorted(IDS)


@pytest.mark.parametrize("seed", range(80))
def test_a_loss_of_power_takes_nothing_that_was_committed(seed: int, tmp_path: Path) -> None:
    story = Story(seed, tmp_path)
    story.files.fuse = story.chance.randint(0, 90)
    story.live()
    if story.path.exists():
        story.check()


@pytest.mark.parametrize("seed", range(80))
def test_a_process_that_goes_on_after_a_kill_loses_nothing_with_the_power(seed: int, tmp_path: Path) -> None:
    story = Story(1000 + seed, tmp_path)
    story.files.fuse = story.chance.randint(10, 60)
    story.live()
    story.files.fuse = story.chance.randint(10, 60)
    story.live()
    story.check()
