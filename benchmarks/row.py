"""One line of the table: what was measured, what it is worth, and what it must reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Bound:
    """What a value must reach."""

    sign: str
    limit: float

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.sign == ">=" else value <= self.limit


def at_least(limit: float) -> Bound:
    return Bound(">=", limit)


def at_most(limit: float) -> Bound:
    return Bound("<=", limit)


@dataclass(frozen=True)
class Row:
    """A line of the table. Without a bound it is for information."""

    measure: str
    figure: str
    """What was measured, with its unit."""
    value: float
    """What is judged: mostly the figure as a ratio to something in the same run."""
    unit: str
    """What the value is a multiple of, or its unit."""
    bound: Bound | None = None
    peers: Mapping[str, str] = field(default_factory=dict[str, str])
    """By a peer's name: its figure and its value."""
    rounds: Sequence[Any] = ()
    """What the value is the median of."""
    broken: str = ""
    """Why there is no value."""

    @property
    def verdict(self) -> str:
        if self.broken:
            return "BROKEN"
        if self.bound is None:
            return ""
        return "pass" if self.bound.holds(self.value) else "MISSED"


def broken(measure: str, why: str) -> Row:
    """The line of a measure that could not be taken."""
    return Row(measure, "", float("nan"), "", broken=why)
