"""The async handles behind the sync names, so that one test text goes through both.

The event loop runs in a thread of its own; a call from a test waits until the loop has carried it out.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Any, Self

import keepstep
from keepstep.api.async_store import AsyncBlock
from keepstep.runtime.inline import drive

STUCK_SECONDS = 60
"""A call that takes so long will never end; better that its test says so."""


BEHIND = (keepstep.AsyncRun, keepstep.AsyncUsing, keepstep.AsyncHandle, keepstep.AsyncWorker, AsyncBlock)


class LoopThread:
    """An event loop that runs in a thread for as long as the tests do."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Have the loop carry out a coroutine, and wait for its end."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, name="event loop of the tests", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(STUCK_SECONDS)


LOOP = LoopThread()


def open_behind(place: Any, **options: Any) -> StoreBehind:
    """Open a store through `open_async`, behind the sync names."""

    async def opened() -> keepstep.AsyncStore:
        return await keepstep.open_async(place, **options)

    return StoreBehind(LOOP.run(opened()))


def act(store: Any, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    """Do something with the engine of a store, the way the store does it; `work(engine)` gives a coroutine."""
    coroutine = work(store._session.engine)
    return LOOP.run(coroutine) if isinstance(store, StoreBehind) else drive(coroutine)


class Behind:
    """An async handle; calling a method waits for what it gives."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._handle, name)
        if not inspect.ismethod(found):
            return found

        def call(*args: Any, **named: Any) -> Any:
            return _in_front(found(*args, **named))

        return call

    def gather(self, *calls: Callable[[], Any]) -> list[Any]:
        """Each call runs in a thread of its own beside the loop, so that it can wait for what it calls."""

        async def beside(threads: ThreadPoolExecutor, call: Callable[[], Any]) -> Any:
            return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, call)

        with ThreadPoolExecutor(max(1, len(calls))) as threads:
            return LOOP.run(self._handle.gather(*(beside(threads, call) for call in calls)))

    def __repr__(self) -> str:
        return repr(self._handle)

    def __enter__(self) -> Any:
        return _in_front(self._handle.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return bool(LOOP.run(self._handle.__aexit__(kind, error, traceback)))


class StoreBehind(Behind):
    """An AsyncStore."""

    def carry(self, function: Callable[[Any], Any], *args: Any, **named: Any) -> keepstep.Outcome:
        """A plain function is run beside the loop, so that it can wait for what it calls."""
        if not callable(function):
            return LOOP.run(self._handle.carry(function, *args, **named))
        return LOOP.run(self._handle.carry(lambda run: function(Behind(run)), *args, **named))

    def claim_due(self, *args: Any, **named: Any) -> list[Behind]:
        """See `Store.claim_due`."""
        return [Behind(run) for run in LOOP.run(self._handle.claim_due(*args, **named))]

    def __enter__(self) -> Self:
        return self


def _in_front(value: Any) -> Any:
    """What an async method gave, as the sync method gives it."""
    if inspect.iscoroutine(value):
        value = LOOP.run(value)
    if inspect.isasyncgen(value):
        return _one_by_one(value)
    if isinstance(value, BEHIND):
        return Behind(value)
    return value


def _one_by_one(items: Any) -> Iterator[Any]:
    while True:
        try:
            yield LOOP.run(anext(items))
        except StopAsyncIteration:
            return
