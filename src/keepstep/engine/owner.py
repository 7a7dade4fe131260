"""This process as an owner of runs: known to the store from its first claim on, kept alive by one heartbeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Protocol

from keepstep.engine.context import Clock, Ids
from keepstep.engine.writer import Writer
from keepstep.store.base import Renewal, Store


class Heart(Protocol):
    """Something that beats until it is stopped."""

    def stop(self) -> None:
        """End, and wait for the last beat."""
        ...


class Ownership:
    """The owner's id, its lease, and the runs that it holds."""

    def __init__(
        self,
        store: Store,
        ids: Ids,
        lease_seconds: float,
        *,
        turnstile: AbstractAsyncContextManager[object],
        mutex: AbstractContextManager[object],
        start_heart: Callable[[str, Callable[[Renewal], None]], Heart],
    ) -> None:
        self.lease_seconds = lease_seconds
        self._store = store
        self._ids = ids
        self._turnstile = turnstile
        self._start_heart = start_heart
        self._owner: str | None = None
        self._heart: Heart | None = None
        self._renewed_us = 0
        """When the lease was prolonged last."""
        self._writers: dict[str, Writer] = {}
        self._mutex = mutex
        self._entering: Counter[str | None] = Counter()
        """How many are about to claim a run; under None, those who do not know yet which."""

    async def owner(self) -> str:
        """The id of this owner, who is enlisted at the first call."""
        if self._owner is not None:
            return self._owner
        async with self._turnstile:
            if self._owner is None:
                owner = self._ids.owner()
                await self._store.enlist(owner, self.lease_seconds)
                self._renewed_us = await self._store.now()
                self._heart = self._start_heart(owner, self.heard)
                self._owner = owner
        return self._owner

    def is_me(self, owner: str) -> bool:
        """Whether this is this owner's id."""
        return owner == self._owner

    @contextmanager
    def entering(self, run_id: str | None) -> Generator[None]:
        """While a claim is made: a run that names this owner and has no writer is not left behind yet."""
        with self._mutex:
            self._entering[run_id] += 1
        try:
            yield
        finally:
            with self._mutex:
                self._entering[run_id] -= 1
                if not self._entering[run_id]:
                    del self._entering[run_id]

    def is_left(self, run_id: str, epoch: int, *, entering: int = 0) -> bool:
        """Whether a run that names this owner is nobody's here: it could not be released, or nobody was told of it.

        The writer of an earlier epoch does not have it. `entering` is 1 for who is about to claim it.
        """
        with self._mutex:
            alone = self._entering[run_id] <= entering and not self._entering[None]
            writer = self._writers.get(run_id)
            return alone and (writer is None or writer.epoch != epoch)

    def left(self, renewal: Renewal) -> dict[str, int]:
        """The runs that a heartbeat found in our name, and that nobody here holds, with their epochs."""
        return {run_id: epoch for run_id, (_, epoch) in renewal.held.items() if self.is_left(run_id, epoch)}

    def hold(self, writer: Writer) -> None:
        """A run was claimed."""
        self._writers[writer.run_id] = writer

    def drop(self, writer: Writer) -> None:
        """A run was released, or lost."""
        if self._writers.get(writer.run_id) is writer:
            del self._writers[writer.run_id]

    def heard(self, renewal: Renewal) -> None:
        """Tell every writer what the heartbeat saw of its run."""
        self._renewed_us = renewal.now_us
        for run_id, writer in list(self._writers.items()):
            writer.beat(*renewal.held.get(run_id, (None, 0)))

    def lease_left(self, clock: Clock) -> float:
        """Seconds until somebody may take over what this owner holds, unless the lease is prolonged."""
        return max(0.0, self.lease_seconds - (clock.now_us() - self._renewed_us) / 1e6)

    def held(self) -> list[Writer]:
        """The writers of all runs that this owner holds."""
        return list(self._writers.values())

    async def retire(self) -> None:
        """Leave in good order."""
        async with self._turnstile:
            owner, self._owner = self._owner, None
            self.stop()
            if owner is not None:
                await self._store.retire(owner)

    def stop(self) -> None:
        """End the heartbeat. Twice is fine."""
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.stop()
