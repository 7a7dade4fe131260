"""keepstep.open and keepstep.open_async."""

from __future__ import annotations

import os
from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from keepstep.api.places import store_for
from keepstep.api.session import Session, settings
from keepstep.api.store import Store
from keepstep.codec.registry import Registry
from keepstep.engine.context import Limits, Redact
from keepstep.errors import WrongUse
from keepstep.runtime.clock import Clock, SystemClock
from keepstep.runtime.durations import Duration
from keepstep.runtime.ids import SystemIds
from keepstep.runtime.inline import InlineRuntime, drive
from keepstep.store.base import Store as BaseStore

if TYPE_CHECKING:
    from keepstep.api.async_store import AsyncStore

Place = str | os.PathLike[str] | BaseStore
"""A path is a SQLite file; also "dir:PATH", "postgresql://...", "memory:", "memory:NAME"; or a store object."""


def open(  # noqa: A001 - keepstep.open reads as it should
    place: Place,
    *,
    read_only: bool = False,
    lease: Duration = "30s",
    interrupts: tuple[type[BaseException], ...] = (),
    registry: Registry | None = None,
    limits: Limits | None = None,
    redact: Redact | None = None,
    clock: Clock | None = None,
) -> Store:
    """Open a store, and create it if there is none.

    `lease`: how long a frozen process keeps its runs (a dead one on this machine loses them at once). `interrupts`:
    exceptions that leave a run `ready` instead of `failed`. `registry`: the classes that may be stored and read.
    `redact`: a function of a value and of what it is (`state`, `arguments`, `result`, `error`, `question`, `answer`,
    `message`, `note`, `reason`), which returns what is written in its place.
    """
    time = SystemClock() if clock is None else clock
    options = settings(
        time, SystemIds(), registry=registry, limits=limits, redact=redact, lease=lease, interrupts=interrupts
    )
    store = store_for(place, time, read_only=read_only)
    if not store.blocking:
        raise WrongUse(f"The store {store.url} needs an event loop; use keepstep.open_async().")
    drive(store.open())
    return Store(Session(store, store, InlineRuntime(time), options))


class Opening:
    """What `open_async` gives: `async with` it, or await it and close the store yourself."""

    def __init__(self, place: Any, read_only: bool, make_options: Any, clock: Clock) -> None:  # noqa: FBT001
        self._place = place
        self._read_only = read_only
        self._make_options = make_options
        self._clock = clock
        self._store: AsyncStore | None = None

    def __await__(self) -> Generator[Any, None, AsyncStore]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncStore:
        self._store = await self._open()
        return self._store

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._store is not None
        await self._store.close()

    async def _open(self) -> AsyncStore:
        from keepstep.api.async_store import AsyncStore
        from keepstep.runtime.event_loop import LoopRuntime

        options = self._make_options()
        blocking = store_for(self._place, self._clock, read_only=self._read_only)
        store = _on_loop(blocking)
        try:
            await store.open()
        except BaseException:
            await store.close()
            raise
        return AsyncStore(Session(store, blocking, LoopRuntime(self._clock), options))


def _on_loop(store: BaseStore) -> BaseStore:
    """A store in the form that an event loop waits for: its own, if it has one."""
    if not store.blocking:
        return store
    if hasattr(store, "on_loop"):
        return cast(Any, store).on_loop()
    from keepstep.runtime.off_thread import OffThread

    return OffThread(store)


def open_async(
    place: Place,
    *,
    read_only: bool = False,
    lease: Duration = "30s",
    interrupts: tuple[type[BaseException], ...] = (),
    registry: Registry | None = None,
    limits: Limits | None = None,
    redact: Redact | None = None,
    clock: Clock | None = None,
) -> Opening:
    """The same as `open`, for an event loop: `async with keepstep.open_async("runs.db") as store`."""
    time = SystemClock() if clock is None else clock
    return Opening(
        place,
        read_only,
        lambda: settings(
            time, SystemIds(), registry=registry, limits=limits, redact=redact, lease=lease, interrupts=interrupts
        ),
        time,
    )
