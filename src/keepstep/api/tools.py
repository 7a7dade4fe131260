"""What is said at a tool, once for all its calls, and what a tool can ask while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar, overload

from keepstep.engine.calls import POLICY, Policy, policy_from, policy_of
from keepstep.engine.effects import CURRENT, Effect
from keepstep.engine.undos import know
from keepstep.errors import BadInput, WrongUse, shown

F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    key: Callable[..., str | int] | None = None,
    target: str | None = None,
    undo: Callable[..., Any] | None = None,
    idempotent: bool | None = None,
    reconcile: Callable[..., Any] | None = None,
    not_done: Sequence[type[BaseException]] | None = None,
    unsure: Literal["ask", "raise"] | None = None,
    min_lease: float | None = None,
) -> Callable[[F], F]: ...
def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    key: Callable[..., str | int] | None = None,
    target: str | None = None,
    undo: Callable[..., Any] | None = None,
    idempotent: bool | None = None,
    reconcile: Callable[..., Any] | None = None,
    not_done: Sequence[type[BaseException]] | None = None,
    unsure: Literal["ask", "raise"] | None = None,
    min_lease: float | None = None,
) -> Any:
    """Say about a function what holds for all its calls through `run.once`.

    `key` gives from the arguments what the tool itself calls the same thing (an invoice's number). `idempotent`: it may
    be called again with the same idempotency key. `reconcile` finds out whether a call happened. `not_done` are the
    exceptions that say that it did not. `undo` is called with a `keepstep.Done` when a rollback undoes it. `min_lease`
    are seconds of lease that must be left. The function itself stays as it is.
    """
    if key is not None and not callable(key):  # pyright: ignore[reportUnnecessaryComparison]
        raise BadInput(f"key= is {shown(key)}; give a function that makes the key from a call's arguments.")
    policy = policy_from(
        name=name,
        key=key,
        target=target,
        undo=undo,
        idempotent=idempotent,
        reconcile=reconcile,
        not_done=not_done,
        unsure=unsure,
        min_lease=min_lease,
    )
    if undo is not None:
        know(undo)

    def mark(function: F) -> F:
        return _marked(function, policy)

    return mark if function is None else mark(function)


def _marked(function: F, policy: Policy) -> F:
    given: Any = function
    if callable(given) and type(given) not in (staticmethod, classmethod):  # which are not what is called
        with suppress(AttributeError, TypeError):
            setattr(given, POLICY, policy)
    if policy_of(given) is not policy:
        raise BadInput(f"The function {shown(given)} cannot carry what is said of it; mark one written with def.")
    return function


def effect() -> Effect:
    """Inside a tool: the effect that it is, with its idempotency key, attempt, epoch and the lease that is left."""
    found = CURRENT.get()
    if found is None:
        raise WrongUse("keepstep.effect() was called outside of an effect; call the tool through run.once(tool, ...).")
    return found
