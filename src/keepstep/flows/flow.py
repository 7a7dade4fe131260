"""A flow: a workflow written as named steps, of which each says which one follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, overload

from keepstep.errors import BadInput, shown
from keepstep.flows.backoff import Backoff, backoff_of
from keepstep.flows.steps import Step
from keepstep.flows.versions import Migration, fingerprint_of
from keepstep.log.records import TagValue
from keepstep.runtime.durations import Duration, seconds
from keepstep.runtime.ids import SystemIds

F = TypeVar("F", bound=Callable[..., Any])
R_co = TypeVar("R_co", covariant=True)

MAX_STEPS = 1000
"""An agent that goes in circles costs money until somebody looks."""
BACKOFF = Backoff()
"""How a step waits that says nothing of it."""
NAME_BYTES_MAX = 256
"""Names of flows, steps and versions stand in every row."""


class Carrier(Protocol[R_co]):
    """A store, sync or async."""

    def carry(
        self,
        function: Any,
        run_id: str,
        workflow: str | None = None,
        *,
        input: Any = None,
        tags: Mapping[str, TagValue] | None = None,
        wait: Duration = 0,
    ) -> R_co: ...


class Flow:
    """A workflow written as named steps: `refund = keepstep.Flow("refund", start="assess")`.

    A step gets `(run, state)` and returns the name or the function of the step that follows, `run.finish(value)`, or
    None to finish with the state. The state is saved after each step. `state` is its type, a dict when left out.
    `version` is remembered by every run. After `max_steps` steps a run fails.
    """

    def __init__(
        self,
        name: str,
        *,
        start: str | None = None,
        version: str | int = 1,
        state: type[Any] | None = None,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.name = _name("name", name)
        self.version = _name("version", str(version) if type(version) is int else version)
        self.state = state
        self.max_steps = _whole("max_steps", max_steps)
        self._start = None if start is None else _name("start", start)
        self._steps: dict[str, Step] = {}
        self._migrations: dict[str, Migration] = {}
        self.whole: Callable[..., Any] | None = None
        """The one function of a flow that is a plain loop."""

    @overload
    def step(self, function: F, /) -> F: ...
    @overload
    def step(
        self,
        /,
        *,
        retries: int = 0,
        backoff: float | Backoff = BACKOFF,
        timeout: Duration | None = None,
        name: str | None = None,
    ) -> Callable[[F], F]: ...
    def step(
        self,
        function: Any = None,
        /,
        *,
        retries: int = 0,
        backoff: float | Backoff = BACKOFF,
        timeout: Duration | None = None,
        name: str | None = None,
    ) -> Any:
        """Make a function a step, under its own name or another.

        `retries`: how often it is tried again after it raised, each time from the stored state, after waits that grow
        (`backoff`). `timeout`: an async step is cancelled after that; a plain one is told by its next keepstep call.
        """
        limit = None if timeout is None else seconds(timeout, "timeout", least=0.001)

        def add(function: F) -> F:
            named = _name("name", getattr(function, "__name__", "step") if name is None else name)
            if named in self._steps:
                raise BadInput(f"Flow {self.name!r} has a step {named!r} already; give this one another name=.")
            if self.whole is not None:
                raise BadInput(f"Flow {self.name!r} is one function; write keepstep.Flow(...) to have steps.")
            self._steps[named] = Step(named, function, retries, backoff_of(backoff), limit).check()
            return function

        return add if function is None else add(function)

    def migrate(
        self,
        from_version: str | int,
        *,
        to_version: str | int | None = None,
        steps: Mapping[str, str] | None = None,
    ) -> Callable[[F], F]:
        """Say how a state of an older version becomes one of this (or of `to_version`): `function(state)` returns it.

        `steps` says what steps are called now that were called otherwise. A run is lifted when it is carried on, and
        has this version from its next checkpoint.
        """
        before = _name("from_version", str(from_version))
        after = self.version if to_version is None else _name("to_version", str(to_version))

        def add(function: F) -> F:
            if before in self._migrations or before in (self.version, after):
                raise BadInput(f"Flow {self.name!r} cannot be lifted from version {before!r} twice, nor to itself.")
            self._migrations[before] = Migration(after, function, dict(steps or {}))
            return function

        return add

    def check(self) -> None:
        """Refuse a flow that cannot be carried: without steps, or without the step that it starts with."""
        if self.whole is None and not self._steps:
            raise BadInput(f"Flow {self.name!r} has no steps; write some with @flow.step.")
        if self.whole is None and self.start not in self._steps:
            raise BadInput(
                f"Flow {self.name!r} starts with {self.start!r}, which is no step of it: {', '.join(self._steps)}."
            )

    def run(
        self,
        store: Carrier[R_co],
        input: Any = None,
        *,
        id: str | None = None,
        tags: Mapping[str, TagValue] | None = None,
        wait: Duration = 0,
    ) -> R_co:
        """Start a run, or go on with the one of this id, and carry it to its end or pause in this process.

        On a store of `open_async` this is awaited.
        """
        return store.carry(self, self.new_id() if id is None else id, input=input, tags=tags, wait=wait)

    def new_id(self) -> str:
        """A random id for a run."""
        return f"{self.name}-{SystemIds().owner()}"

    @property
    def start(self) -> str:
        """The step that a run starts with."""
        return self._start if self._start is not None else next(iter(self._steps), "")

    @property
    def steps(self) -> Mapping[str, Step]:
        """The steps by name."""
        return self._steps

    @property
    def migrations(self) -> Mapping[str, Migration]:
        """How older versions are lifted, by the version before."""
        return self._migrations

    @property
    def fingerprint(self) -> bytes:
        """Changes when the steps do, not when what is written in them does."""
        return fingerprint_of(self.start, list(self._steps), self.state)

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """What its runs call."""
        return [self.whole] if self.whole is not None else [step.function for step in self._steps.values()]

    def named(self, step: Any) -> str | None:
        """The name of a step that was given by its name or its function; None when it is none."""
        if isinstance(step, str):
            return step if step in self._steps else None
        return next((one.name for one in self._steps.values() if one.function is step), None)

    def __repr__(self) -> str:
        return f"<keepstep.Flow {self.name!r}, version {self.version!r}, {len(self._steps)} steps>"


def flow(
    name: str,
    *,
    version: str | int = 1,
    state: type[Any] | None = None,
) -> Callable[[Callable[..., Any]], Flow]:
    """Make a function of a run a flow, `@keepstep.flow("report")`, so that a worker carries its runs."""

    def make(function: Callable[..., Any]) -> Flow:
        if not callable(function):  # pyright: ignore[reportUnnecessaryComparison]
            raise BadInput(f"A flow is made of a function of the run, not of {shown(function)}.")
        made = Flow(name, version=version, state=state)
        made.whole = function
        return made

    return make


def _name(what: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value.encode(errors="replace")) <= NAME_BYTES_MAX:
        raise BadInput(f"{what}= is {shown(value)}; give text of 1 to {NAME_BYTES_MAX} bytes.")
    return value


def _whole(what: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"{what}= is {shown(value)}; give a whole number from 1 up.")
    return value
