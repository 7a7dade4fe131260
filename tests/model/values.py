"""What the machine saves: states of every plain kind, and how one state follows from the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from hypothesis import strategies as st

KEYS = ("log", "n", "text", "nested", "count", "")
"""`count` is also a method of lists, tuples and text; the empty key names the one part of a state that is not cut."""


class Times(NamedTuple):
    """A long text or long bytes, printed in short; `copied` makes it what it stands for."""

    what: str | bytes
    times: int


LONG = Times("the same long sentence again and again ", 40)


class Client:
    """A value that cannot be stored."""

    def __repr__(self) -> str:
        return "<Client>"


class Change(NamedTuple):
    """How a state becomes the next one; what does not fit the state does something near to it."""

    kind: str
    key: str = "log"
    index: int = 0
    value: Any = None


_LEAVES = st.one_of(
    st.sampled_from([None, True, False, 0, 1, -1, 1 << 63, -(1 << 80), 0.0, -0.0, 0.1, float("inf"), float("nan")]),
    st.sampled_from(["", "a", "été 🙂", Times("x", 600), LONG, b"", b"\x00\xff", Times(b"\x00", 700)]),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        st.dictionaries(st.integers(0, 3), inner, max_size=2),
    ),
    max_leaves=5,
)
LARGE = st.builds(
    lambda count, leaf: {"log": [{"n": n} for n in range(count)], "text": LONG, "nested": leaf},
    st.integers(0, 20),
    _LEAVES,
)
STATES = st.one_of(st.dictionaries(st.sampled_from(KEYS), _VALUES, max_size=4), LARGE, _VALUES)
VALUES = _VALUES

CHANGES = st.one_of(
    st.builds(Change, st.just("append"), st.sampled_from(("log", "nested")), st.just(0), _VALUES),
    st.builds(Change, st.just("element"), st.sampled_from(KEYS), st.integers(0, 70), _VALUES),
    st.builds(Change, st.just("set"), st.sampled_from(KEYS), st.just(0), _VALUES),
    st.builds(
        Change,
        st.sampled_from(("delete", "to the end", "shorten")),
        st.sampled_from(KEYS),
        st.integers(0, 3),
        st.none(),
    ),
    st.builds(Change, st.just("new"), st.just(""), st.just(0), STATES),
    st.sampled_from([Change("same"), Change("unstorable")]),
)


def copied(value: Any) -> Any:
    """A copy that shares nothing that can change, and no nan, which equals itself only when it is shared."""
    if isinstance(value, Times):
        return value.what * value.times
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(copied(one) for one in value)
    return float(repr(value)) if isinstance(value, float) else value


def exact(value: Any) -> str:
    """Tells apart what Python calls equal: True and 1, 0.0 and -0.0, the order of keys. And nan is nan."""
    return repr(value)


def is_storable(value: Any) -> bool:
    """Whether a value has a stored form."""
    return repr(Client()) not in repr(value)


def changed(state: Any, change: Change) -> Any:
    """The state after a change. A dict is changed in place, as an agent does it."""
    if change.kind == "new":
        return copied(change.value)
    if change.kind == "same":
        return state
    if isinstance(state, list):
        state = {"log": state}
    if not isinstance(state, dict):
        state = {}
    _IN_PLACE[change.kind](state, change)
    return state


def _append(state: dict[Any, Any], change: Change) -> None:
    if not isinstance(state.get(change.key), list):
        state[change.key] = []
    state[change.key].append(copied(change.value))


def _element(state: dict[Any, Any], change: Change) -> None:
    inner = state.get(change.key)
    if isinstance(inner, list) and inner:
        inner[change.index % len(inner)] = copied(change.value)
    elif isinstance(inner, dict) and inner:
        inner[list(inner)[change.index % len(inner)]] = copied(change.value)
    elif isinstance(inner, str | bytes) and inner:
        middle = change.index % len(inner)
        state[change.key] = cast(Any, inner[:middle]) + inner[middle + 1 :]
    else:
        _set(state, change)


def _set(state: dict[Any, Any], change: Change) -> None:
    state[change.key] = copied(change.value)


def _delete(state: dict[Any, Any], change: Change) -> None:
    state.pop(change.key, None)


def _to_the_end(state: dict[Any, Any], change: Change) -> None:
    if change.key in state:
        state[change.key] = state.pop(change.key)


def _shorten(state: dict[Any, Any], change: Change) -> None:
    inner = state.get(change.key)
    if isinstance(inner, list):
        del inner[change.index :]


def _spoil(state: dict[Any, Any], change: Change) -> None:
    state[change.key] = [Client()]


_IN_PLACE: dict[str, Callable[[dict[Any, Any], Change], None]] = {
    "append": _append,
    "element": _element,
    "set": _set,
    "delete": _delete,
    "to the end": _to_the_end,
    "shorten": _shorten,
    "unstorable": _spoil,
}
