"""The way to a server, in two forms: one that blocks the calling thread, and one that an event loop waits for.

Everything else in this folder is written once, as coroutines over these protocols. Over the blocking form they never
suspend, so that a sync handle can drive them inline.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

Values = tuple[Any, ...]
"""A row, as its columns hold it."""


class Step(NamedTuple):
    """One statement with its values."""

    statement: str
    values: dict[str, Any] = {}  # noqa: RUF012 - never changed
    seconds: float | None = None
    """How long the answer may take; as usual when None."""


class Wire(Protocol):
    """One connection to the server. It is used by one thread or task at a time."""

    @property
    def broken(self) -> bool:
        """Nothing more comes through."""
        ...

    @property
    def idle(self) -> bool:
        """No transaction is open, and nothing is under way."""
        ...

    @property
    def is_open(self) -> bool:
        """A transaction is open in which nothing has failed."""
        ...

    async def send(self, steps: Sequence[Step]) -> list[list[Values]]:
        """Carry out statements in one round trip; the rows of each."""
        ...

    async def heed(self, seconds: float) -> bool:
        """Wait for a notification, at most so long; whether one came."""
        ...

    async def cut(self) -> None:
        """End the connection, whatever is under way."""
        ...

    def forget(self) -> None:
        """In a forked child: let go of the parent's connection without a word to the server."""
        ...


class Port(Protocol):
    """Makes connections, and waits, in one of the two forms."""

    blocking: bool

    async def connect(self, conninfo: str, seconds: float, *, prepares: bool) -> Wire:
        """A new connection, whose answers may take so long."""
        ...

    def mutex(self) -> AbstractAsyncContextManager[object]:
        """Held by one at a time, also while something is awaited."""
        ...

    def places(self, count: int) -> AbstractAsyncContextManager[object]:
        """Held by so many at a time."""
        ...

    async def pause(self, seconds: float) -> None:
        """Really wait so long."""
        ...
