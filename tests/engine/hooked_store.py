"""A store in which a test can act right before and right after each commit, and hold one up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from keepstep.api.places import store_for
from keepstep.errors import StoreFailed
from keepstep.log.records import decode_head
from keepstep.store.base import Decision, Entry, Outcome, Renewal, View
from keepstep.testing import FaultyStore
from tests.places import Place

PATIENCE_SECONDS = 15.0
"""After so long a test that waits has failed."""

Before = Callable[[Sequence[Entry]], object]
After = Callable[[Sequence[Entry], list[Outcome]], list[Outcome] | None]


class HookedStore(FaultyStore):
    """Any blocking store, with hooks that are each called once, in turn."""

    def __init__(self, place: Place) -> None:
        super().__init__(store_for(place.url, place.clock, read_only=False))
        self.commits: list[list[str]] = []
        """The run ids of every commit that was tried."""
        self.views = 0
        self.renewals: list[Renewal] = []
        self.enlisted: list[str] = []
        self.retired: list[str] = []
        self.renewed = threading.Condition()
        self._before: list[Before] = []
        self._after: list[After] = []
        self._before_view: list[Callable[[], object]] = []

    def before(self, *acts: Before) -> None:
        """Act before each of the next commits."""
        self._before += acts

    def after(self, *acts: After) -> None:
        """Act after each of the next commits; what an act returns is taken for the outcomes."""
        self._after += acts

    def before_view(self, *acts: Callable[[], object]) -> None:
        """Act before each of the next views."""
        self._before_view += acts

    def hold(self) -> Held:
        """Hold up the next commit."""
        held = Held()
        self.before(held)
        return held

    async def commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        self.commits.append([one.run_id for one in batch])
        if self._before:
            self._before.pop(0)(batch)
        outcomes = await super().commit(batch)
        if self._after:
            return self._after.pop(0)(batch, outcomes) or outcomes
        return outcomes

    async def view(self, run_id: str) -> View:
        self.views += 1
        if self._before_view:
            self._before_view.pop(0)()
        return await super().view(run_id)

    async def enlist(self, owner: str, seconds: float) -> None:
        self.enlisted.append(owner)
        await super().enlist(owner, seconds)

    async def retire(self, owner: str) -> None:
        self.retired.append(owner)
        await super().retire(owner)

    async def renew(self, owner: str, seconds: float) -> Renewal:
        renewal = await super().renew(owner, seconds)
        with self.renewed:
            self.renewals.append(renewal)
            self.renewed.notify_all()
        return renewal


class Held:
    """A commit that was held up on its way to the store."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._let_go = threading.Event()

    def __call__(self, batch: Sequence[Entry]) -> None:
        self._arrived.set()
        assert self._let_go.wait(PATIENCE_SECONDS), "the test never let the commit go"

    def arrived(self) -> None:
        """Wait until the commit is there."""
        assert self._arrived.wait(PATIENCE_SECONDS), "no commit came"

    def let_go(self) -> None:
        """Let it go on."""
        self._let_go.set()


class Work:
    """Calls in threads of their own, each with its outcome."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self.outcomes: dict[int, Any] = {}

    def start(self, *calls: Callable[[], Any]) -> None:
        """Start each call in a thread."""
        for call in calls:
            number = len(self._threads)
            thread = threading.Thread(target=self._do, args=(number, call), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _do(self, number: int, call: Callable[[], Any]) -> None:
        try:
            self.outcomes[number] = call()
        except BaseException as error:
            self.outcomes[number] = error

    def ended(self) -> list[Any]:
        """What every call returned or raised, in the order in which they were started."""
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), "a call hangs"
        return [self.outcomes[number] for number in range(len(self._threads))]


def lose_reply(batch: Sequence[Entry], outcomes: list[Outcome]) -> None:
    """It was written, and nobody is told."""
    raise StoreFailed("the reply was lost")


def refuse(batch: Sequence[Entry]) -> None:
    """It was not written."""
    raise StoreFailed("the disk said no")


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread is about to do."""
    pause = threading.Event()
    for _ in range(int(PATIENCE_SECONDS / 0.001)):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("it never came")


def kinds(place: Place, run_id: str) -> list[str]:
    """The kinds of a run's records, read by somebody else."""
    return [head.kind for head in heads(place, run_id)]


def heads(place: Place, run_id: str) -> list[Any]:
    """The heads of a run's records, read by somebody else."""
    store = store_for(place.url, place.clock, read_only=False)
    from keepstep.runtime.inline import drive

    drive(store.open())
    try:
        return [decode_head(one.head) for one in drive(store.records(run_id))]
    finally:
        drive(store.close())


def decisions_in(batch: Sequence[Entry]) -> list[str]:
    """The runs that a batch decides about."""
    return [one.run_id for one in batch if isinstance(one, Decision)]
