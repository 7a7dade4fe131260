"""An open store in one process: the engine with all that it is handed, from open to close, and across a fork."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from keepstep.codec.registry import DEFAULT, Registry
from keepstep.engine.calls import is_awaited
from keepstep.engine.checkpoints import Tapes
from keepstep.engine.claims import claim_of, giving_back, release
from keepstep.engine.context import Engine, Ids, Limits, Redact, Runtime
from keepstep.engine.owner import Ownership
from keepstep.errors import BadInput, KeepstepError, WrongUse, shown
from keepstep.runtime.clock import Clock
from keepstep.runtime.durations import Duration, seconds
from keepstep.runtime.heartbeat import Heartbeat
from keepstep.runtime.inline import drive
from keepstep.store.base import Decision, Renewal
from keepstep.store.base import Store as BaseStore
from keepstep.store.commit_queue import CommitQueue

LEASE_SECONDS_LEAST = 0.2
"""Three heartbeats have to fit in."""

CLOCK_VERBS = ("now_us", "wait", "sleep", "pause")


class Settings(NamedTuple):
    """How a store was opened."""

    clock: Clock
    ids: Ids
    registry: Registry
    limits: Limits
    redact: Redact | None
    lease_seconds: float
    interrupts: tuple[type[BaseException], ...]


def settings(
    clock: Clock,
    ids: Ids,
    *,
    registry: Registry | None,
    limits: Limits | None,
    redact: Redact | None,
    lease: Duration,
    interrupts: tuple[type[BaseException], ...],
) -> Settings:
    """The arguments of open(), checked."""
    kinds = interrupts if isinstance(interrupts, tuple) else (interrupts,)  # pyright: ignore[reportUnnecessaryIsInstance]
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"interrupts= has {shown(kind)}; give exception classes.")
    _check(clock, registry, limits, redact)
    return Settings(
        clock,
        ids,
        registry or DEFAULT,
        limits or Limits(),
        redact,
        seconds(lease, "lease", least=LEASE_SECONDS_LEAST),
        kinds,
    )


def _check(clock: Any, registry: Any, limits: Any, redact: Any) -> None:
    """Refuse what would only fail later, somewhere in the depths."""
    if isinstance(clock, type) or not all(callable(getattr(clock, verb, None)) for verb in CLOCK_VERBS):
        raise BadInput(f"clock= is {shown(clock)}; give a clock, such as keepstep.testing.Clock().")
    if registry is not None and not isinstance(registry, Registry):
        raise BadInput(f"registry= is {shown(registry)}; give a keepstep.Registry().")
    if limits is not None and not isinstance(limits, Limits):
        raise BadInput(f"limits= is {shown(limits)}; give keepstep.Limits(...).")
    if redact is not None and (not callable(redact) or is_awaited(redact)):
        raise BadInput(f"redact= is {shown(redact)}; give a plain function of a value and of what it is.")
    for name, most in (limits or Limits())._asdict().items():
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise BadInput(f"limits= has {name}={shown(most)}; give a whole number from 0 up.")


class Session:
    """One open store in one process."""

    def __init__(self, store: BaseStore, beating: BaseStore, runtime: Runtime, options: Settings) -> None:
        self.store = store
        self.options = options
        self._beating = beating
        """The same store in its blocking form, for the heartbeat's thread."""
        self._runtime = runtime
        self._closed = False
        self._engine = self._build()
        _sessions.add(self)

    @property
    def engine(self) -> Engine:
        """What the rules need; raises once the store is closed."""
        if self._closed:
            raise WrongUse(f"The store {self.store.url} is closed; open it again.")
        return self._engine

    async def close(self) -> None:
        """Write what waits, release what is held, leave. Twice is fine."""
        if self._closed:
            return
        self._closed = True
        engine = self._engine
        try:
            for writer in engine.ownership.held():
                await release(claim_of(engine, writer), "closed")
            await engine.runtime.drain(engine.queue)
            await engine.ownership.retire()
        finally:
            engine.ownership.stop()
            await self.store.close()

    def after_fork(self) -> None:
        """A forked child starts with no connection, no owner and no claims; what it inherited is the parent's."""
        self.store.after_fork()
        self._engine = self._build()

    def _build(self) -> Engine:
        options, runtime = self.options, self._runtime
        ownership = Ownership(
            self.store,
            options.ids,
            options.lease_seconds,
            turnstile=runtime.turnstile(),
            mutex=runtime.mutex(),
            start_heart=self._start_heart,
        )
        return Engine(
            store=self.store,
            queue=CommitQueue(self.store, runtime.mutex()),
            runtime=runtime,
            clock=options.clock,
            ids=options.ids,
            registry=options.registry,
            limits=options.limits,
            tapes=Tapes(options.limits, runtime.mutex()),
            ownership=ownership,
            redact=options.redact,
        )

    def _start_heart(self, owner: str, heard: Callable[[Renewal], None]) -> Heartbeat:
        options = self.options
        lease_seconds = options.lease_seconds

        def renew() -> Renewal:
            renewal = drive(self._beating.renew(owner, lease_seconds))
            if not renewal.stands:
                drive(self._beating.enlist(owner, lease_seconds))
            for run_id, epoch in self._engine.ownership.left(renewal).items():
                drive(self._beating.commit([Decision(run_id, giving_back(owner, epoch, options.ids.batch()))]))
            return renewal

        heart = Heartbeat(renew, heard, lease_seconds, self.options.clock)
        heart.start()
        return heart


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for session in list(_sessions):
        try:
            session.after_fork()
        except KeepstepError:  # pragma: no cover - the child finds out when it uses the store
            continue


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
