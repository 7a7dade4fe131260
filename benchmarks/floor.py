"""The floor: what the disk itself can do. The same bytes appended to a file and made durable, in a plain loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple


class Floor:
    """A file that is only appended to."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "floor", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._sync = getattr(os, "fdatasync", os.fsync)

    def append(self, payloads: Sequence[bytes]) -> float:
        """Append each and make it durable before the next; the seconds it took."""
        file, write, sync = self._file, os.write, self._sync
        start = perf_counter()
        for payload in payloads:
            write(file, payload)
            sync(file)
        return perf_counter() - start

    def close(self) -> None:
        os.close(self._file)


class Pace(NamedTuple):
    """How long a number of steps took, and the floor beside them."""

    steps: int
    seconds: float
    floor_seconds: float


def race(folder: Path, payloads: Sequence[bytes], chunk: int, burst: Callable[[range], Any]) -> Pace:
    """Take turns with the floor, a chunk each, so that both meet the same moods of the disk.

    There is one step per payload; `burst` takes the numbers of the steps to do, and returns when they are durable.
    """
    floor = Floor(folder)
    seconds = floor_seconds = 0.0
    for first in range(0, len(payloads), chunk):
        numbers = range(first, min(first + chunk, len(payloads)))
        floor_seconds += floor.append(payloads[numbers.start : numbers.stop])
        start = perf_counter()
        burst(numbers)
        seconds += perf_counter() - start
    floor.close()
    return Pace(len(payloads), seconds, floor_seconds)


def rate(paces: Sequence[Pace]) -> float:
    """Steps per second: the median of the rounds."""
    return median(pace.steps / pace.seconds for pace in paces)


def ratio(paces: Sequence[Pace]) -> float:
    """The rate over the floor's: the median of the rounds."""
    return median(pace.floor_seconds / pace.seconds for pace in paces)


def ratios(paces: Sequence[Pace]) -> list[float]:
    """The rate over the floor's, round by round."""
    return [pace.floor_seconds / pace.seconds for pace in paces]
