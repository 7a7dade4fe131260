"""What the code of a flow gets of a claimed run: its handle, in a block; for plain steps on an event loop, a bridge."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Self, TypeVar

from keepstep.api.async_run import AsyncRun
from keepstep.api.run import Run
from keepstep.engine.gathering import gather

T = TypeVar("T")


class PlainHands:
    """Of a sync store."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def enter(self) -> None:
        """Begin the block."""
        self._run.__enter__()

    def handle(self, *, awaited: bool) -> Run:
        """The run."""
        return self._run

    async def leave(self, error: BaseException | None) -> bool:
        """End the block."""
        return self._run.__exit__(None if error is None else type(error), error, None)


class LoopHands:
    """Of an async store."""

    def __init__(self, run: AsyncRun, bridged: Run) -> None:
        self._run = run
        self._bridged = bridged

    async def enter(self) -> None:
        """Begin the block."""
        await self._run.__aenter__()

    def handle(self, *, awaited: bool) -> Run | AsyncRun:
        """The run for a coroutine function; for a plain one, which is called in a thread, one that needs no await."""
        return self._run if awaited else self._bridged

    async def leave(self, error: BaseException | None) -> bool:
        """End the block."""
        return await self._run.__aexit__(None if error is None else type(error), error, None)


class BridgedRun(Run):
    """A run of an async store for a plain function in a thread: each call waits until the loop has carried it out."""

    _loop: Any = None

    def by(self, loop: Any) -> Self:
        """Go by way of this loop."""
        self._loop = loop
        return self

    def gather(self, *calls: Callable[[], Any]) -> list[Any]:
        """Make calls at once, each in a thread."""
        claim = self._claimed("gather")
        return self._wait(gather(claim, [partial(claim.engine.runtime.call, call) for call in calls]))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        from asyncio import run_coroutine_threadsafe  # sync use imports no event loop

        return run_coroutine_threadsafe(coroutine, self._loop).result()
