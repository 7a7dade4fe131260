"""What a step is, and what it may return."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from keepstep.engine.calls import is_awaited
from keepstep.errors import BadInput, shown
from keepstep.flows.backoff import Backoff

RETRIES_MAX = 1000
"""Whoever wants more wants a loop of his own."""


@dataclass(frozen=True)
class Step:
    """A named step of a flow."""

    name: str
    function: Callable[..., Any]
    retries: int = 0
    """How often it is tried again after it raised."""
    backoff: Backoff = field(default_factory=Backoff)
    timeout_seconds: float | None = None

    @property
    def is_awaited(self) -> bool:
        """It is a coroutine function."""
        return is_awaited(self.function)

    def check(self) -> Step:
        """Refuse what cannot be a step."""
        if not callable(self.function):
            raise BadInput(f"A step is a function, not {shown(self.function)}.")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or not 0 <= self.retries <= RETRIES_MAX:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"retries= of step {self.name!r} is {shown(self.retries)}; give 0 to {RETRIES_MAX}.")
        _check_parameters(self.name, self.function)
        return self


def _check_parameters(name: str, function: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # written in C: what it takes shows when it is called
    try:
        signature.bind(None, None)
    except TypeError:
        raise BadInput(f"Step {name!r} takes {signature}; a step takes (run, state).") from None


@dataclass(frozen=True)
class Next:
    """What a step returns to go on with another state than the one it was given: `Next("pay", state)`.

    With `None` as the step the run is finished, with this state as its result.
    """

    step: str | Callable[..., Any] | None
    state: Any
