"""Where the tests of a store stand: opening stores, driving them, and writing runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from keepstep.log.chain import Damage, Walk
from keepstep.log.records import Tagged, TagValue
from keepstep.store.base import Append, Committed, Decision, Entry, Outcome, Query, Store, View
from keepstep.store.conformance.pen import Pen
from keepstep.store.conformance.turned_clock import TurnedClock

T = TypeVar("T")


class Bench:
    """A new clock and new stores for every test. A subclass says how its store is opened."""

    clock: TurnedClock

    def open_store(self, clock: TurnedClock) -> Store:
        """Make an empty store. The tests open and close it."""
        raise NotImplementedError("say in your subclass how your store is made")

    def reopen(self, store: Store) -> Store | None:
        """Make another store on what this one has, which may be open or closed; None when that cannot be."""
        return None

    def reopen_read_only(self, store: Store) -> Store | None:
        """Make one that only reads what this one has; None when that cannot be."""
        return None

    def place_for_backup(self) -> str | None:
        """Name a place where there is nothing; None when the store has no backup."""
        return None

    def open_backup(self, target: str) -> Store:
        """Make a store on a backup."""
        raise NotImplementedError("say in your subclass how a backup is opened")

    # --- around every test ---------------------------------------------------------------------------------------

    def setup_method(self) -> None:
        self.clock = TurnedClock()
        self._open: list[Store] = []
        self._blocking = True
        self._runner: asyncio.Runner | None = None

    def teardown_method(self) -> None:
        for store in reversed(self._open):
            self.do(store.close())
        if self._runner is not None:
            self._runner.close()

    def fresh(self) -> Store:
        """An empty store, open."""
        return self.opened(self.open_store(self.clock))

    def opened(self, store: Store) -> Store:
        """Open it, and close it after the test."""
        self._blocking = store.blocking
        self._open.append(store)
        self.do(store.open())
        return store

    def beside(self, store: Store) -> Store | None:
        """A second store on the same runs, open."""
        other = self.reopen(store)
        return None if other is None else self.opened(other)

    def stores(self, store: Store) -> list[Store]:
        """This store, and a second one on the same runs where there can be one."""
        other = self.beside(store)
        return [store] if other is None else [store, other]

    # --- driving -------------------------------------------------------------------------------------------------

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of a store's method."""
        if self._blocking:
            return drive(work)
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(work)

    def do_at_once(self, works: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
        """The outcomes of several, each in its own thread or task."""
        if not self._blocking:

            async def gathered() -> list[T]:
                return await asyncio.gather(*(work() for work in works))

            return self.do(gathered())
        return in_threads([lambda work=work: drive(work()) for work in works])

    # --- writing -------------------------------------------------------------------------------------------------

    def pen(self, run_id: str = "r") -> Pen:
        """A writer of a run that is not there yet."""
        return Pen(run_id, self.clock)

    def outcome(self, store: Store, entry: Entry) -> Outcome:
        """How one entry went."""
        (outcome,) = self.do(store.commit([entry]))
        return outcome

    def write(self, store: Store, *entries: Entry) -> list[Append | None]:
        """Commit entries which must all be written."""
        outcomes = self.do(store.commit(entries))
        assert all(isinstance(one, Committed) for one in outcomes), outcomes
        return [one.append for one in outcomes if isinstance(one, Committed)]

    def run(
        self,
        store: Store,
        run_id: str = "r",
        *,
        tags: dict[str, TagValue] | None = None,
        workflow: str = "w",
        parent: str | None = None,
    ) -> Pen:
        """A run that was just created, and its writer."""
        pen = self.pen(run_id)
        self.write(store, pen.open(workflow, parent=parent))
        if tags:
            self.write(store, pen.append(Tagged(tags=dict(tags))))
        return pen

    def held_run(self, store: Store, owner: str, run_id: str = "r", workflow: str = "w") -> Pen:
        """A run that an owner has claimed."""
        pen = self.run(store, run_id, workflow=workflow)
        self.write(store, pen.claim(owner))
        return pen

    def view(self, store: Store, run_id: str = "r") -> View:
        """One run, now."""
        return self.do(store.view(run_id))

    def shown(self, store: Store, run_id: str = "r") -> View:
        """One run, now, as a decision sees it."""
        seen: list[View] = []

        def look(view: View) -> None:
            seen.append(view)

        self.write(store, Decision(run_id, look))
        return seen[0]

    def damage(self, store: Store, run_id: str = "r") -> list[Damage]:
        """What the chain shows to be wrong with a log."""
        walk = Walk(run_id)
        return [one for stored in self.do(store.records(run_id)) for one in walk.step(stored)[1]]

    def ids(self, store: Store, query: Query | None = None, limit: int = 1000) -> list[str]:
        """The ids that a query lists."""
        return [row.run_id for row in self.do(store.rows(query or Query(), None, limit)).rows]


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise AssertionError(f"{work.__qualname__} suspended; a blocking store does its work in the calling thread")


def in_threads(works: Sequence[Callable[[], T]]) -> list[T]:
    """Do each in a thread of its own, and start them together; raises what the first failing one raised."""
    start = threading.Barrier(len(works))
    outcomes: dict[int, T] = {}
    errors: list[BaseException] = []

    def one(place: int) -> None:
        try:
            start.wait()
            outcomes[place] = works[place]()
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the test's thread
            errors.append(error)

    threads = [threading.Thread(target=one, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error
    return [outcomes[place] for place in range(len(works))]
