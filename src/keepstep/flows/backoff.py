"""How long a step that raised waits before it is tried again."""

from __future__ import annotations

import math
from hashlib import blake2b

import msgspec

from keepstep.errors import BadInput, shown


class Backoff(msgspec.Struct, frozen=True):
    """Waits that grow: `first` seconds, then `factor` times as long each time, at most `most`.

    `jitter` is the part of a wait that is left to chance, from 0 to 1: runs that failed together do not come back
    together.
    """

    first: float = 1.0
    factor: float = 2.0
    most: float = 300.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        for name, least, largest in (("first", 0, math.inf), ("factor", 1, math.inf), ("most", 0, math.inf)):
            _check(name, getattr(self, name), least, largest)
        _check("jitter", self.jitter, 0, 1)

    def seconds(self, attempt: int, chance: float) -> float:
        """The wait after so many failures; `chance` is from 0 (the whole wait) to 1 (all of the jitter taken off)."""
        exponent = min(attempt - 1, 1000)  # beyond that it is the largest anyway, or the factor is 1
        try:
            whole = min(self.most, self.first * self.factor**exponent)
        except OverflowError:
            whole = self.most if self.first else 0.0
        return whole * (1 - self.jitter * chance)


def chance_of(*what: str | int) -> float:
    """A number from 0 up to 1 that is as good as random from one run to the next, and the same in every process."""
    return int.from_bytes(blake2b(repr(what).encode(), digest_size=6).digest()) / (1 << 48)


def backoff_of(given: object) -> Backoff:
    """A Backoff, as it may be given: one, or the seconds of the first wait."""
    if isinstance(given, Backoff):
        return given
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Backoff(first=float(given))
    raise BadInput(f"backoff= is {shown(given)}; give the seconds of the first wait, or keepstep.Backoff(...).")


def _check(name: str, value: object, least: float, most: float) -> None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not least <= value <= most:  # type: ignore[operator]
        raise BadInput(
            f"{name}= of a backoff is {shown(value)}; give a number from {least:g}"
            + (f" to {most:g}." if math.isfinite(most) else " up.")
        )
