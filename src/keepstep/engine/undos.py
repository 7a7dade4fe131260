"""The functions that undo tools, by name: only what the running code has named can be called, never what is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from keepstep.engine.calls import name_of
from keepstep.errors import BadInput, shown

_known: dict[str, Callable[..., Any]] = {}


class Done(msgspec.Struct, frozen=True):
    """What an undo is told of the effect that it shall undo."""

    run_id: str
    key: str
    tool: str
    target: str | None
    args: list[Any]
    kwargs: dict[str, Any]
    result: Any
    idempotency_key: str
    """Of the undo itself: hand it to the provider."""
    effect_idempotency_key: str
    """The one that the effect was made with."""


def know(undo: Callable[..., Any]) -> str:
    """Remember an undo that the code has named; returns its name in the log."""
    name = name_of(undo)
    _known[name] = undo
    return name


def find(name: str, tool: str, given: Mapping[str, Callable[..., Any]]) -> Callable[..., Any] | None:
    """The function that undoes a tool: given for this rollback, or named by the code; None when nobody knows it."""
    return given.get(tool) or given.get(name) or _known.get(name)


def check_given(given: Any) -> Mapping[str, Callable[..., Any]]:
    """Refuse what is no mapping of tools to functions."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        functions = cast("Mapping[str, Callable[..., Any]]", given)
        if all(isinstance(name, str) and callable(one) for name, one in functions.items()):  # pyright: ignore[reportUnnecessaryIsInstance]
            return functions
    raise BadInput(f"undo= is {shown(cast(Any, given))}; give a function for each tool, by its name: {{'pay': void}}.")
