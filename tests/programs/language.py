"""A small language of agents: a program is data, so that hypothesis can draw it, make it smaller and print it.

A program is a list of steps, a step a list of actions; each step ends with a save.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st

Tool = Literal["pay", "mail", "upload", "transfer"]
REVERSIBLE = ("pay", "upload", "transfer")
"""What a mail says cannot be unsaid."""


@dataclass(frozen=True)
class Memo:
    """Think; equal thoughts are told apart by their order."""

    prompt: int


@dataclass(frozen=True)
class Once:
    """Call a tool: an `upload` may be called again, about a `transfer` one can ask, of the others nobody knows."""

    tool: Tool
    keyed: bool = True
    raises: bool = False
    """Whether a doubt is raised, instead of asked about."""
    again: bool = False
    """When nobody knows, call the same under another key at once, as a model does that saw a time-out."""
    approve: bool = False


@dataclass(frozen=True)
class Nest:
    """A tool that calls others."""

    keyed: bool
    inner: tuple[Memo | Once, ...]


@dataclass(frozen=True)
class Ask:
    """Ask a person."""

    named: bool = False
    ends: Literal["never", "with a default", "with an error"] = "never"


@dataclass(frozen=True)
class Sleep:
    """Go on later."""


@dataclass(frozen=True)
class Receive:
    """Wait for a message."""

    name: Literal["x", "y"]
    hurried: bool = False
    """Whether it gives up after a time."""


@dataclass(frozen=True)
class Gather:
    """Several actions at once."""

    branches: tuple[Action, ...]


Action = Memo | Once | Nest | Ask | Sleep | Receive | Gather
Program = tuple[tuple[Action, ...], ...]

SECONDS = 600.0
"""How long a sleep is, and until when a person or a sender may take their time."""


def places(program: Program) -> Iterator[tuple[str, Action]]:
    """Every action with the name of its place, those inside others too."""
    for number, step in enumerate(program):
        yield from _places(str(number), step)


def _places(outer: str, actions: tuple[Action, ...]) -> Iterator[tuple[str, Action]]:
    for index, action in enumerate(actions):
        at = f"{outer}.{index}"
        yield at, action
        if isinstance(action, Gather):
            yield from _places(at, action.branches)
        if isinstance(action, Nest):
            yield from _places(at, action.inner)


# --- drawing them ----------------------------------------------------------------------------------------------------

_rarely = st.sampled_from((False, False, False, True))
_memos = st.builds(Memo, st.integers(0, 1))
_inner = st.builds(Once, st.sampled_from(("pay", "mail", "upload", "transfer")), st.booleans(), st.booleans())
_onces = st.builds(
    Once, st.sampled_from(("pay", "pay", "mail", "upload", "transfer")), st.booleans(), st.booleans(), _rarely, _rarely
)
_nests = st.builds(Nest, st.booleans(), st.lists(st.one_of(_memos, _inner), min_size=1, max_size=2).map(tuple))
_asks = st.builds(Ask, st.booleans(), st.sampled_from(("never", "never", "with a default", "with an error")))
_sleeps = st.just(Sleep())
_receives = st.builds(Receive, st.sampled_from(("x", "y")), _rarely)
_single = st.sampled_from((0, 0, 0, 0, 1, 2, 3, 4, 4, 5)).flatmap(
    lambda index: (_onces, _memos, _asks, _receives, _nests, _sleeps)[index]
)
_actions = st.sampled_from((0, 0, 0, 1)).flatmap(lambda index: (_single, _gathers)[index])


def _at_once(branches: Sequence[Action]) -> Gather:
    """Of receives at once, two of one name could not be told apart."""
    names: set[str] = set()
    kept: list[Action] = []
    for one in branches:
        if not isinstance(one, Receive) or one.name not in names:
            kept.append(one)
        if isinstance(one, Receive):
            names.add(one.name)
    return Gather(tuple(kept))


_gathers = st.lists(_single, min_size=2, max_size=3).map(_at_once)
PROGRAMS: st.SearchStrategy[Program] = st.lists(
    st.lists(_actions, min_size=1, max_size=3).map(tuple), min_size=2, max_size=4
).map(tuple)
