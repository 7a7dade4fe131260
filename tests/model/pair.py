"""A real store and a plain one: the same is done to both, and whatever they answer and hold has to be the same.

An operation of a real store can be made to fail. Then the store holds, run by run, what it held before the call, or
after it, or what else the call can leave behind; which of these is found by looking, and the plain store goes on there.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import keepstep
from keepstep.api.places import store_for
from keepstep.testing import FaultyStore, SimulatedCrash
from tests.conftest import FOLDER_IN_MEMORY
from tests.crash.plain_model import picture, unsound
from tests.model import plain_reading, told
from tests.model.plain_runs import Owner
from tests.model.plain_store import Interrupt, PlainStore
from tests.model.told import Raised, outcome
from tests.model.values import exact
from tests.places import LEASE_SECONDS, Place

CLOSED_MAX = 2
"""Handles that are kept after their end, to see that they stay refused."""
Ways = Callable[[PlainStore], Iterable[PlainStore]]
"""From the store before a call: what it may have left behind when it failed; the first has the handles."""


@dataclass
class Opened:
    """A store that a process has open."""

    number: int
    store: keepstep.Store
    faulty: FaultyStore
    enlisted: bool = False

    def has_struck(self) -> bool:
        """Whether the operation that was to fail has failed since it was last asked."""
        if not 0 < self.faulty.at <= self.faulty.operations:
            return False
        self.faulty.at = 0
        return True


class Pair:
    """A real store with several processes that have it open, and a plain store."""

    def __init__(self, kind: str, mode: str) -> None:
        folder = FOLDER_IN_MEMORY if Path(FOLDER_IN_MEMORY).is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="keepstep-model-", dir=folder))
        self.place = Place(kind, mode, self.folder)
        self.observer = keepstep.open(self.place.url, clock=self.place.clock)
        self.owners: dict[int, Owner] = {}
        self.names: dict[str, int] = {}
        self.plain = PlainStore(self.place.clock, self.owners, locked=kind in ("dir", "sqlite"))
        self.open: dict[str, Opened] = {}
        self.runs: dict[int, Any] = {}
        """The real handles, by the numbers of the plain ones."""
        self._numbers = 0

    def opened(self, who: str) -> Opened:
        """The store of a process, which opens it when it needs it."""
        if who not in self.open:
            faulty = FaultyStore(store_for(self.place.url, self.place.clock, read_only=False))
            store = self.place.open(cast(Any, faulty), interrupts=(Interrupt,))
            number = len(self.owners)
            self.owners[number] = Owner(number)
            self.open[who] = Opened(number, store, faulty)
        return self.open[who]

    def number(self, count: int = 1) -> int:
        """A number for a new handle; the first of several."""
        self._numbers += count
        return self._numbers - count + 1

    def who_has(self, number: int) -> str:
        """The process that a handle belongs to."""
        owner = self.plain.handles[number].owner
        return next(who for who, opened in self.open.items() if opened.number == owner)

    # --- doing the same to both ----------------------------------------------------------------------------------

    def do(
        self,
        who: str,
        real: Callable[[keepstep.Store], Any],
        plain: Callable[[PlainStore], Any],
        ways: Ways = lambda before: [before],
        *,
        is_quiet: bool = False,
    ) -> Any:
        """Make a call; returns what both answered. `is_quiet` calls do not raise what the store raised."""
        opened = self.opened(who)
        started_us = self.place.clock.now_us()
        before = self.plain.copy()
        expected = outcome(lambda: plain(self.plain))
        found = outcome(lambda: real(opened.store))
        self._notice(opened, started_us)
        if opened.has_struck():
            self._take_in_fault(before, expected, found, ways, is_quiet=is_quiet)
        else:
            assert found == expected, f"the store answered {found}, the plain store {expected}"
        if opened.faulty.dead:
            self.kill(who)
        self._tidy_handles()
        if self.place.clock.now_us() > started_us:
            self.beat_all()
        return found

    def _take_in_fault(self, before: PlainStore, expected: Any, found: Any, ways: Ways, *, is_quiet: bool) -> None:
        after = [self.plain]
        others = list(ways(before))
        if found == expected:
            self._look_and_choose([*after, *others] if is_quiet else after, handles=self.plain)
            return
        assert isinstance(found, Raised), f"the store failed and answered {found}, instead of {expected}"
        assert issubclass(found.kind, keepstep.StoreError | SimulatedCrash), f"the store failed with {found}"
        self._look_and_choose([*after, *others], handles=others[0])

    def _look_and_choose(self, allowed: list[PlainStore], handles: PlainStore) -> None:
        """Go on, run by run, from the allowed store that is the real one."""
        assert unsound(self.observer) == []
        real = told.whole(self.observer, self.names)
        chosen = handles.copy()
        for run_id in sorted({*real, *(run_id for one in allowed for run_id in one.logs)}):
            fitting = [one for one in allowed if exact(one.entry(run_id)) == exact(real.get(run_id))]
            entries = "\n  ".join(exact(one.entry(run_id)) for one in allowed)
            assert fitting, f"the store holds\n  {real.get(run_id)}\nallowed was\n  {entries}"
            chosen.adopt(run_id, fitting[0])
        self.plain = chosen

    def _notice(self, opened: Opened, started_us: int) -> None:
        """An owner is known from its first claim on; from then on its heart beats only when the clock is turned."""
        ownership = opened.store._session._engine.ownership
        heart: Any = ownership._heart
        if heart is not None and not opened.enlisted:
            heart.stop()
            opened.enlisted = True
            self.names[str(ownership._owner)] = opened.number
            self.owners[opened.number].until_us = started_us + int(LEASE_SECONDS * 1e6)

    def _tidy_handles(self) -> None:
        closed = [number for number, handle in self.plain.handles.items() if handle.closed]
        for number in closed[:-CLOSED_MAX]:
            del self.plain.handles[number]
        self.runs = {number: run for number, run in self.runs.items() if number in self.plain.handles}

    # --- what happens to processes -------------------------------------------------------------------------------

    def turn(self, seconds: float) -> None:
        """Time passes, less than a lease; whoever is not frozen renews its lease."""
        self.place.clock.turn(seconds)
        self.beat_all()

    def beat_all(self) -> None:
        """Everybody who is not frozen renews its lease."""
        for who, opened in list(self.open.items()):
            if self.open.get(who) is opened and not self.owners[opened.number].frozen:
                self.beat(who)

    def beat(self, who: str) -> None:
        """A process renews its lease."""
        opened = self.opened(who)
        if opened.enlisted:
            self.do(who, self.place.beat, lambda plain: plain.beat(opened.number))

    def fail_soon(self, who: str, at: int, fault: tuple[Any, Any]) -> None:
        """The operation of this process's store that comes as the `at`-th from now on fails."""
        faulty = self.opened(who).faulty
        faulty.at = faulty.operations + at
        faulty.when, faulty.how = fault

    def freeze(self, who: str) -> None:
        """A process has stopped for longer than its lease."""
        opened = self.opened(who)
        self.owners[opened.number].frozen = True
        self.place.freeze(opened.store)
        self.beat_all()

    def wake(self, who: str) -> None:
        """A frozen process goes on, and renews its lease."""
        self.owners[self.opened(who).number].frozen = False
        self.beat(who)

    def kill(self, who: str) -> None:
        """A process is dead."""
        opened = self.open.pop(who)
        self.place.kill(opened.store)
        self.plain.die(opened.number)
        self._tidy_handles()
        self.beat_all()

    def close(self, who: str) -> None:
        """A process closes its store. If that fails, the process has ended all the same."""
        opened = self.opened(who)
        handles = [run for number, run in self.runs.items() if self.plain.handles[number].owner == opened.number]
        self.do(who, lambda store: store.close(), lambda plain: plain.close(opened.number), is_quiet=True)
        if self.open.pop(who, None) is None:
            return  # it died instead
        if self.plain.locked is False:
            self.place.clock.turn(LEASE_SECONDS + 1)  # whether the lease is still there is not known after a failure
        self.plain.die(opened.number)
        self._tidy_handles()
        self.beat_all()
        for run in handles:
            assert issubclass(outcome(lambda run=run: run.save({"late": True})).kind, keepstep.KeepstepError)

    # --- looking -------------------------------------------------------------------------------------------------

    def check(self, *run_ids: str) -> None:
        """Every run stands where the plain store has it, and these have the same state, in their holders' hands too."""
        heads = [told.head(one, self.names) for one in self.observer.runs(limit=1000).items]
        assert exact(heads) == exact(plain_reading.runs(self.plain))
        for run_id in run_ids:
            found = told.checkpoint(self.observer.load(run_id))
            assert exact(found) == exact(plain_reading.load(self.plain, run_id))
        for number, run in self.runs.items():
            handle = self.plain.handles[number]
            if self.plain.has(handle) and handle.run_id in run_ids:
                assert exact(told.where(run)) == exact(self.plain.where(handle.run_id))

    def check_all(self, store: keepstep.Store) -> None:
        """The store holds what the plain store holds: every checkpoint of every run; and every chain is whole."""
        assert exact(told.whole(store, self.names)) == exact(self.plain.whole())
        assert unsound(store) == []

    def check_copy(self, target: Path) -> None:
        """A backup holds what the store holds."""
        with keepstep.open(f"{self.place.kind}:{target}", read_only=True, clock=self.place.clock) as copy:
            expected = {run_id: kept for run_id, (kept, _) in self.plain.whole().items()}
            assert exact(dict(sorted(picture(copy).items()))) == exact(expected)

    def end(self, *, check: bool) -> None:
        """Look at everything once more, through a store that was opened just now."""
        try:
            if check:
                self.check_all(self.place.open())
        finally:
            for opened in self.open.values():
                opened.faulty.at = 0
                if opened.faulty.dead:
                    self.place.kill(opened.store)
            self.observer.close()
            self.place.close()
            shutil.rmtree(self.folder)
