"""Lengths of time as people write them."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from keepstep.errors import BadInput, shown

Duration = float | str | timedelta
"""Seconds, a timedelta, or text such as "90s", "1m", "2h", "3d", "1h30m"."""

SECONDS_MOST = 100 * 365 * 86400
"""A hundred years: a time so far ahead still has a date."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))+")
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def seconds(value: Duration, what: str, *, least: float = 0.0) -> float:
    """The length in seconds; `what` names the argument in errors."""
    length: float | None = None
    if isinstance(value, timedelta):
        length = value.total_seconds()
    elif isinstance(value, str):
        if _WHOLE.fullmatch(value.strip()):
            length = sum(float(count) * _UNITS[unit] for count, unit in _PIECE.findall(value))
    elif isinstance(value, int | float) and not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        length = float(max(-1, min(value, 2 * SECONDS_MOST)))  # a whole number may be larger than any float
    if length is None or not math.isfinite(length):
        raise BadInput(
            f"{what}= is {shown(value)}; give seconds, a timedelta, or text such as '90s', '1m', '2h', '3d'."
        )
    if length < least:
        raise BadInput(f"{what}= is {shown(value)}; it must be at least {least:g} seconds.")
    if length > SECONDS_MOST:
        raise BadInput(f"{what}= is {shown(value)}; it must be at most a hundred years.")
    return length
