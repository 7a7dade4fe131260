"""What happens around a program: who goes on with it and how that ends, and what people do in the meantime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st

Who = Literal["a", "b"]


@dataclass(frozen=True)
class Fate:
    """What befalls a process inside a call, after what the tool is for has happened or before it could."""

    happens: bool
    then: Literal["returns", "refuses", "times out", "dies", "is interrupted", "freezes", "is cancelled"]


@dataclass(frozen=True)
class Fault:
    """What befalls a process at an operation of its store, counted from now."""

    at: int
    when: Literal["before", "after"]
    how: Literal["crash", "fail", "full", "freeze"]


@dataclass(frozen=True)
class Luck:
    """What befalls one visit."""

    fates: tuple[Fate, ...] = ()
    fault: Fault | None = None
    beats: bool = False
    """Whether a process that wakes renews its lease before it goes on."""


@dataclass(frozen=True)
class Enter:
    """A worker goes on with a run as far as it can."""

    who: Who
    run: int
    luck: Luck


@dataclass(frozen=True)
class RollBack:
    """A run goes back."""

    who: Who
    run: int
    to: int
    luck: Luck


@dataclass(frozen=True)
class Fork:
    """A run gets a child."""

    who: Who
    run: int
    at: int
    edited: bool
    effects: Literal["ask", "reuse", "fresh"]
    luck: Luck


@dataclass(frozen=True)
class Answer:
    """A person answers an open question: yes or the truth, something else, or no."""

    which: int
    how: Literal["yes", "other", "no"]


@dataclass(frozen=True)
class Settle:
    """An operator tells about a doubt: the truth, or that it shall be done again whatever happened."""

    which: int
    again: bool


@dataclass(frozen=True)
class Send:
    """A message for a run."""

    run: int
    name: Literal["x", "y"]


@dataclass(frozen=True)
class Turn:
    """Time passes."""

    seconds: float


@dataclass(frozen=True)
class Cancel:
    """Somebody wants a run to stop."""

    run: int


@dataclass(frozen=True)
class Kill:
    """A worker dies while it does nothing."""

    who: Who


Event = Enter | RollBack | Fork | Answer | Settle | Send | Turn | Cancel | Kill
Story = list[Event]
EVENTS_LEAST = 8
"""Shorter stories would be told more often, and little happens in them."""

# --- drawing them ----------------------------------------------------------------------------------------------------

_who = st.sampled_from(("a", "b"))
_index = st.integers(0, 5)
_early = st.sampled_from((0, 0, 0, 1, 2))
_thens = ("times out", "dies", "freezes", "returns", "is interrupted", "refuses") * 4
_fates = st.builds(Fate, st.booleans(), st.sampled_from((*_thens, "is cancelled")))
_faults = st.builds(
    Fault,
    st.integers(1, 40),
    st.sampled_from(("before", "after")),
    st.sampled_from(("crash", "freeze", "crash", "fail", "full")),
)
_luck = st.builds(
    Luck,
    st.lists(_fates, max_size=4).map(tuple),
    st.one_of(st.none(), _faults),
    st.booleans(),
)
_EVENTS: dict[str, tuple[int, st.SearchStrategy[Event]]] = {
    "enter": (18, st.builds(Enter, _who, _index, _luck)),
    "answer": (8, st.builds(Answer, _index, st.sampled_from(("yes", "yes", "other", "no")))),
    "settle": (3, st.builds(Settle, _index, st.sampled_from((False, False, True)))),
    "go back": (4, st.builds(RollBack, _who, _index, _early, _luck)),
    "fork": (
        4,
        st.builds(Fork, _who, _index, _early, st.booleans(), st.sampled_from(("ask", "ask", "reuse", "fresh")), _luck),
    ),
    "send": (2, st.builds(Send, _index, st.sampled_from(("x", "y")))),
    "turn": (2, st.builds(Turn, st.sampled_from((5.0, 300.0, 700.0)))),
    "kill": (1, st.builds(Kill, _who)),
    "cancel": (1, st.builds(Cancel, _index)),
}
"""How often each happens, and with what."""
_kinds = st.sampled_from([kind for kind, (often, _) in _EVENTS.items() for _ in range(often)])
STORIES: st.SearchStrategy[Story] = st.lists(
    _kinds.flatmap(lambda kind: _EVENTS[kind][1]), min_size=EVENTS_LEAST, max_size=3 * EVENTS_LEAST
)
