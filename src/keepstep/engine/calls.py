"""A call to the outside: which function, with what, and what its user and its author say about it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType
from typing import Any, Literal, TypeGuard, cast
from weakref import WeakKeyDictionary

import msgspec
from msgspec import structs
from msgspec.structs import asdict

from keepstep.codec.registry import Registry
from keepstep.codec.values import encode
from keepstep.errors import BadInput, CannotStore, NotDone, WrongUse, shown
from keepstep.log.chain import digest_of

POLICY = "__keepstep_tool__"
"""Where a function that is a tool carries its policy."""

NEVER_SENT: tuple[type[BaseException], ...] = (ConnectionRefusedError,)
"""Errors that say that nothing had been sent: nobody took the call. (An unknown host is known by its class's name: its
class is in `socket`, which is not imported for it.)"""
NEVER_SENT_NAMES = frozenset(("gaierror",))

SECONDS_MOST = 100 * 365 * 86400
"""A lease of a hundred years: nothing needs more."""

_signatures: WeakKeyDictionary[FunctionType, inspect.Signature] = WeakKeyDictionary()
"""Of functions, as long as they live."""

_PLACEHOLDER: Any = getattr(functools, "Placeholder", object())
"""Where a partial leaves a positional argument open, from Python 3.14 on."""


class NeverAwaitedError(WrongUse):
    """A plain function gave a coroutine where nothing can await it: nothing of it has run."""


class Policy(msgspec.Struct, frozen=True):
    """What is known of a call besides its arguments. None everywhere: nothing was said."""

    key: str | Callable[..., Any] | None = None
    """What the call is called: the text itself, or (said at the tool) a function of the arguments."""
    name: str | None = None
    target: str | None = None
    undo: Callable[..., Any] | None = None
    idempotent: bool | None = None
    reconcile: Callable[..., Any] | None = None
    not_done: Sequence[type[BaseException]] | None = None
    unsure: Literal["ask", "raise"] | None = None
    min_lease: float | None = None
    approve: str | None = None
    """A question: somebody has to say yes before the call is made."""
    expires_seconds: float | None = None
    """How long that question stands, and what holds then."""
    default: bool | None = None
    rejected: Literal["raise", "value"] | None = None

    def over(self, other: Policy) -> Policy:
        """This policy, and where it says nothing, the other."""
        if other is NOTHING:
            return self
        told = {name: value for name, value in asdict(self).items() if value is not None}
        return structs.replace(other, **told)


NOTHING = Policy()


def policy_of(function: Callable[..., Any]) -> Policy:
    """What was said at the tool."""
    return getattr(_bare(function), POLICY, NOTHING)


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called in the log."""
    policy = policy_of(function)
    if policy.name is not None:
        return policy.name
    bare = _bare(function)
    return getattr(bare, "__qualname__", type(bare).__qualname__)


def is_awaited(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something that has to be awaited."""
    if type(function) is FunctionType:
        return inspect.iscoroutinefunction(function)
    target = getattr(function, "func", function)
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def _bare(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, partial):
        function = function.func
    return function


@dataclass(frozen=True)
class Call:
    """A function with its arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    policy: Policy
    tool: str
    tool_key: str | None
    """What the tool itself calls the same thing, when it says so."""
    arguments: bytes
    """Digest of the arguments."""
    asked: tuple[tuple[Any, ...], Mapping[str, Any]] | None = None
    """The arguments that were asked for, when an approval changed them."""

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        said: Policy,
        known: Registry,
    ) -> Call:
        """A call as the user makes it."""
        if not callable(function):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"The first argument is the function to call, not {shown(function)}.")
        at_tool = policy_of(function)
        tool_key = _tool_key(at_tool, *_unfolded(function, args, kwargs)[1:])
        if type(function) is partial and _can_be_stored(function, known):
            function, args, kwargs = _unfolded(function, args, kwargs)
        policy = said.over(NOTHING if at_tool is NOTHING else structs.replace(at_tool, key=None))
        encoded = encode([list(args), dict(sorted(kwargs.items()))], known, "arguments")
        return cls(
            function,
            args,
            kwargs,
            policy,
            name_of(function),
            tool_key,
            digest_of(encoded),
        )

    def check(self) -> None:
        """Raise the TypeError that the call would raise before it did anything: nothing was sent."""
        check_arguments(self.function, self.args, self.kwargs)

    def edited(self, changed: Mapping[str, Any], known: Registry) -> Call:
        """The call with other arguments, by the names of its parameters. It is still known by what was asked for."""
        bound = signature_of(self.function).bind(*self.args, **self.kwargs)
        bound.arguments.update(changed)
        args, kwargs = bound.args, bound.kwargs
        check_arguments(self.function, args, kwargs)
        encode([list(args), dict(kwargs)], known, "arguments")
        return replace(self, args=args, kwargs=kwargs, asked=(self.args, self.kwargs))

    @property
    def shown(self) -> str:
        """The call as a person reads it."""
        given = [shown(one) for one in self.args] + [f"{name}={shown(one)}" for name, one in self.kwargs.items()]
        return f"{self.tool}({', '.join(given)})"


def check_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise the TypeError that the call would raise before it did anything."""
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):
        return  # written in C, and says nothing about itself
    signature.bind(*args, **kwargs)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature, which takes Python longer to make than all else that is done about a call."""
    if type(function) is not FunctionType:
        return inspect.signature(function)
    known = _signatures.get(function)
    if known is None:
        known = _signatures[function] = inspect.signature(function)
    return known


def _unfolded(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]:
    """The function inside a partial, with the arguments that the partial holds."""
    while isinstance(function, partial):
        left = list(args)
        held = [left.pop(0) if one is _PLACEHOLDER and left else one for one in function.args]
        args, kwargs, function = (*held, *left), {**function.keywords, **kwargs}, function.func
    return function, args, kwargs


def _can_be_stored(function: Callable[..., Any], known: Registry) -> bool:
    """Whether what a partial holds counts as arguments; a client, say, is part of the function."""
    _, args, kwargs = _unfolded(function, (), {})
    try:
        encode([list(args), dict(kwargs)], known, "arguments")
    except CannotStore:
        return False
    return True


def _tool_key(policy: Policy, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    if policy.key is None:
        return None
    key: Any = policy.key(*args, **kwargs) if callable(policy.key) else policy.key
    if isinstance(key, int) and not isinstance(key, bool) and abs(key) < 1 << 64:
        return str(key)
    if is_text(key):
        return key
    raise BadInput(f"key= of the tool gave {shown(key)}; it has to give text or a number of 64 bits.")


def did_not_happen(error: BaseException, not_done: Sequence[type[BaseException]]) -> bool:
    """Whether an error says that the effect did not happen. Any other error proves nothing."""
    return (
        isinstance(error, (NotDone, NeverAwaitedError, *NEVER_SENT, *not_done))
        or type(error).__name__ in NEVER_SENT_NAMES
    )


def policy_from(**options: Any) -> Policy:
    """A policy of what was given; what makes no sense is refused, where it was said."""
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        fits, give = _CHECKS.get(name, _ANYTHING)
        if not fits(value):
            raise BadInput(f"{name.removesuffix('_seconds')}= is {shown(value)}; give {give}.")
    if "approve" not in given and not given.keys().isdisjoint(_OF_APPROVALS):
        raise BadInput("expires=, default= and rejected= speak of an approval; give approve= as well.")
    return Policy(**given)


def is_text(value: Any) -> TypeGuard[str]:
    """Whether it is text that says something and can be written."""
    if not isinstance(value, str) or not value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= SECONDS_MOST


def _are_errors(value: Any) -> bool:
    if not isinstance(value, list | tuple):
        return False
    return all(isinstance(one, type) and issubclass(one, BaseException) for one in cast("list[Any]", value))


_OF_APPROVALS = ("expires_seconds", "default", "rejected")
_ANYTHING: tuple[Callable[[Any], bool], str] = (lambda value: True, "")
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "key": (lambda value: callable(value) or is_text(value), "text"),
    "name": (is_text, "text"),
    "target": (is_text, "text"),
    "idempotent": (lambda value: isinstance(value, bool), "True or False"),
    "reconcile": (callable, "a function"),
    "undo": (callable, "a function"),
    "not_done": (_are_errors, "a list of exception classes"),
    "unsure": (lambda value: value in ("ask", "raise"), "'ask' or 'raise'"),
    "min_lease": (_are_seconds, "seconds, as a number that is not negative"),
    "approve": (is_text, "the question, as text"),
    "default": (lambda value: isinstance(value, bool), "True or False"),
    "rejected": (lambda value: value in ("raise", "value"), "'raise' or 'value'"),
}
"""What fits each, and what to say otherwise."""
