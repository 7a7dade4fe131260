"""A call with more said about it than its function and arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar, overload

from keepstep.engine import effects
from keepstep.engine.calls import NOTHING, Call, Policy, policy_from
from keepstep.engine.claims import Claim
from keepstep.errors import BadInput
from keepstep.runtime.inline import drive

P = ParamSpec("P")
T = TypeVar("T")


class _Using:
    """What was said, and the run to call for."""

    def __init__(self, claim: Callable[[str], Claim], policy: Policy, wait: Callable[..., Any] = drive) -> None:
        self._claim = claim
        self._policy = policy
        self._wait = wait
        """Has a coroutine of the engine carried out, where that is not awaited."""


class Using(_Using):
    """Calls with a policy of their own, sync: what `run.using(...)` gives."""

    def once(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that must not repeat: see `Run.once`."""
        claim = self._claim("once")
        return self._wait(effects.once(claim, made(claim, self._policy, function, args, kwargs)))

    def memo(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that is safe to repeat: see `Run.memo`."""
        claim = self._claim("memo")
        return self._wait(effects.memo(claim, made(claim, self._policy, function, args, kwargs)))


class AsyncUsing(_Using):
    """Calls with a policy of their own, async: what `run.using(...)` gives."""

    @overload
    async def once(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    async def once(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def once(self, function: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call a function that must not repeat: see `AsyncRun.once`."""
        claim = self._claim("once")
        return await effects.once(claim, made(claim, self._policy, function, args, kwargs))

    @overload
    async def memo(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    async def memo(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def memo(self, function: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call a function that is safe to repeat: see `AsyncRun.memo`."""
        claim = self._claim("memo")
        return await effects.memo(claim, made(claim, self._policy, function, args, kwargs))


def made(claim: Claim, policy: Policy, function: Callable[..., Any], args: Any, kwargs: Any) -> Call:
    """The call, checked."""
    return Call.of(function, args, kwargs, policy, claim.engine.registry)


def said(**options: Any) -> Policy:
    """A policy of one call."""
    if callable(options["key"]):
        raise BadInput("key= of one call is text; a function that gives it from the arguments is said at the tool.")
    return policy_from(**options) if any(option is not None for option in options.values()) else NOTHING
