"""What the engine is handed: a store, a queue, a clock, ids, a way to wait; and its limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import Context
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from keepstep.codec.registry import Registry
from keepstep.store.base import Store
from keepstep.store.commit_queue import CommitQueue

if TYPE_CHECKING:
    from keepstep.engine.checkpoints import Tapes
    from keepstep.engine.owner import Ownership

T = TypeVar("T")


class Clock(Protocol):
    """Tells the time."""

    def now_us(self) -> int:
        """Microseconds since 1970."""
        ...


class Ids(Protocol):
    """Makes random ids."""

    def batch(self) -> bytes:
        """Tells one append from every other."""
        ...

    def effect(self) -> str:
        """The idempotency key of one effect."""
        ...

    def owner(self) -> str:
        """Names one open store in one process."""
        ...

    def short(self) -> str:
        """The end of a fork's id."""
        ...


class Promise(Protocol):
    """An outcome that is set once and waited for through `Runtime.wait`."""

    done: bool

    def set(self, value: Any) -> None:
        """Give the value."""
        ...

    def fail(self, error: BaseException) -> None:
        """Give an error instead."""
        ...

    def wake(self) -> bool:
        """Wake the thread that waits for it; False when none does."""
        ...


class Runtime(Protocol):
    """How a call is awaited."""

    name: str

    def mutex(self) -> AbstractContextManager[object]:
        """A lock held for microseconds."""
        ...

    def turnstile(self) -> AbstractAsyncContextManager[object]:
        """A lock that is held while something is awaited."""
        ...

    def promise(self) -> Any:
        """A new promise."""
        ...

    async def wait(self, queue: CommitQueue, promise: Any) -> Any:
        """Wait for a promise's outcome."""
        ...

    def nudge(self, queue: CommitQueue) -> None:
        """Have what waits written, though nobody waits for it."""
        ...

    async def drain(self, queue: CommitQueue) -> None:
        """Have everything that waits written, and wait for it; for a store that is being closed."""
        ...

    async def pause(self, seconds: float) -> None:
        """Let the time pass."""
        ...

    async def call(self, function: Callable[[], T], seconds: float | None = None) -> T:
        """Run the user's function; a coroutine function is cancelled after so long, which raises `OverTimeError`."""
        ...

    async def together(self, calls: Sequence[tuple[Any, Context]]) -> list[tuple[Any, BaseException | None]]:
        """Carry out several calls at once, each in its context, and return how each went, in order."""
        ...


class OverTimeError(Exception):
    """A call took longer than it may."""


class Limits(NamedTuple):
    """How large things may be, each with its reason."""

    state_bytes: int = 64 << 20
    """A state is held in memory several times while it is saved."""
    state_warn_bytes: int = 8 << 20
    """Above this a step takes tens of milliseconds; large things belong beside the state."""
    body_bytes: int = 64 << 20
    """Results, notes and errors."""
    id_bytes: int = 512
    """Ids stand in indexes and file names."""
    name_bytes: int = 256
    """Workflows, steps, labels, tags: they stand in every row."""
    tags: int = 32
    """The row carries them, and the row is written with every save."""
    cached_runs: int = 64
    """Runs whose last state is kept in memory between claimless saves."""
    cached_bytes: int = 64 << 20
    """The same, in bytes."""


Redact = Callable[[Any, str], Any]
"""Given a value and what it is (`state`, `result` ...): what is written in its place."""


class Engine(NamedTuple):
    """Everything a rule may use."""

    store: Store
    queue: CommitQueue
    runtime: Runtime
    clock: Clock
    ids: Ids
    registry: Registry
    limits: Limits
    tapes: Tapes
    ownership: Ownership
    redact: Redact | None = None
    """Applied to whatever the user gave, before it is encoded. Names and digests are as they were given."""
