"""The sync and the async handles are the same, but for what is awaited."""

from __future__ import annotations

import collections.abc
import inspect
import re
import typing

import pytest

import keepstep
from keepstep.api.async_store import AsyncBlock
from keepstep.api.opening import Opening
from keepstep.api.store import Block

PAIRS = [
    (keepstep.Store, keepstep.AsyncStore),
    (keepstep.Run, keepstep.AsyncRun),
    (keepstep.Using, keepstep.AsyncUsing),
    (keepstep.Handle, keepstep.AsyncHandle),
    (keepstep.Worker, keepstep.AsyncWorker),
]

NOT_AWAITED = {"run", "changes", "using", "handle", "worker", "stop"}
"""Two give a block for `async with`, one is looped over with `async for`, and the others only take in what is said."""

CALLED_FOR_THE_USER = {"memo", "once"}
"""They take the user's functions, with whatever arguments: what these are is told by their overloads, which
`tests/typing` goes through."""
CALLED_AT_ONCE = {"gather"}
"""In one it takes functions, in the other coroutines as well."""

TWINS = {
    keepstep.AsyncStore: keepstep.Store,
    keepstep.AsyncRun: keepstep.Run,
    keepstep.AsyncUsing: keepstep.Using,
    keepstep.AsyncHandle: keepstep.Handle,
    keepstep.AsyncWorker: keepstep.Worker,
    AsyncBlock: Block,
    collections.abc.AsyncIterator: collections.abc.Iterator,
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
}
"""What stands for what."""

BOTH_HAVE = {"__enter__", "__exit__", "__init__", "__repr__"}


def public(cls):
    """The public members of a handle, with those that Python itself calls, by their sync names."""
    names = [name for name in dir(cls) if not name.startswith("_") or TWINS.get(name, name) in BOTH_HAVE]
    return {TWINS.get(name, name): inspect.getattr_static(cls, name) for name in names}


def pairs_of(kind):
    """(name, sync, async) of every member of this kind in either of the handles."""
    found = []
    for plain, other in PAIRS:
        one, two = public(plain), public(other)
        found += [
            pytest.param(one[name], two[name], id=f"{plain.__name__}.{name}")
            for name in sorted(one.keys() & two.keys())
            if kind(one[name])
        ]
    return found


def is_property(member):
    return isinstance(member, property)


def is_documented(member):
    return is_property(member) or (inspect.isfunction(member) and not member.__name__.startswith("_"))


def in_sync_words(annotation):
    """The annotation with the sync twin for everything async in it."""
    if not isinstance(annotation, str) and annotation in TWINS:
        return TWINS[annotation]
    inner = typing.get_args(annotation)
    if not inner:
        return annotation
    if typing.get_origin(annotation) is collections.abc.Callable:
        parameters, returned = inner
        if parameters is ...:
            return typing.Callable[..., in_sync_words(returned)]
        return typing.Callable[[in_sync_words(one) for one in parameters], in_sync_words(returned)]
    origin = typing.get_origin(annotation)
    return (TWINS.get(origin, origin), *(in_sync_words(one) for one in inner))


def told(function):
    """What a function takes and gives, in sync words."""
    hints = {name: in_sync_words(one) for name, one in typing.get_type_hints(function).items()}
    return parameters_of(function), hints


def parameters_of(function):
    """What a function takes, by name."""
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


def first_sentence(member):
    """The first line of a docstring, without what stands only before something awaited."""
    first = (inspect.getdoc(member) or "").partition("\n")[0]
    first = re.sub(r"\b(await|async) ", "", first).replace("`an with`", "`a with`").replace("an `with`", "a `with`")
    return first.replace("AsyncRun.", "Run.")


@pytest.mark.parametrize(("plain", "other"), PAIRS, ids=lambda cls: cls.__name__)
def test_both_have_the_same_names(plain, other):
    assert public(plain).keys() == public(other).keys()
    assert public(plain).keys() - BOTH_HAVE


@pytest.mark.parametrize(("plain", "other"), pairs_of(inspect.isfunction))
def test_both_take_the_same_arguments_and_give_the_same(plain, other):
    if plain.__name__ in CALLED_FOR_THE_USER | CALLED_AT_ONCE:
        assert parameters_of(plain) == parameters_of(other)
    else:
        assert told(plain) == told(other)


@pytest.mark.parametrize(("plain", "other"), pairs_of(inspect.isfunction))
def test_what_is_plain_in_one_is_awaited_in_the_other(plain, other):
    assert not inspect.iscoroutinefunction(plain)
    if other.__name__ in NOT_AWAITED or other.__name__ in ("__init__", "__repr__"):
        assert not inspect.iscoroutinefunction(other)
        assert inspect.isgeneratorfunction(plain) == inspect.isasyncgenfunction(other)
    else:
        assert inspect.iscoroutinefunction(other)


@pytest.mark.parametrize(("plain", "other"), pairs_of(is_property))
def test_what_is_a_property_in_one_is_one_in_the_other(plain, other):
    assert is_property(other)
    assert told(plain.fget) == told(other.fget)
    assert plain.fset is None
    assert other.fset is None


@pytest.mark.parametrize(("plain", "other"), pairs_of(is_documented))
def test_both_say_the_same_of_themselves(plain, other):
    assert first_sentence(plain) == first_sentence(other) != "" or plain.__name__ in CALLED_AT_ONCE


def test_both_are_opened_the_same_way():
    parameters, hints = told(keepstep.open)
    others, other_hints = told(keepstep.open_async)

    assert parameters == others
    assert hints.pop("return") is keepstep.Store
    assert other_hints.pop("return") is Opening
    assert hints == other_hints


def test_both_blocks_are_entered_and_left_the_same_way():
    for name in ("enter", "exit"):
        assert told(getattr(Block, f"__{name}__")) == told(getattr(AsyncBlock, f"__a{name}__"))
