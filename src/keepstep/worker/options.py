"""How a worker is to work, checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple, cast

from keepstep.errors import BadInput, shown
from keepstep.runtime.durations import Duration, seconds

CONCURRENCY_MAX = 1000
"""Each run that is carried takes a thread or a task; more of them want more processes."""
POLL_SECONDS_LEAST = 0.01


class Options(NamedTuple):
    """How a worker is to work."""

    concurrency: int
    poll_seconds: float
    grace_seconds: float
    deaths: int
    """How often a run may end its worker before it is given up."""
    alive: Path | None
    """A file that is touched as long as the worker lives."""


def options(*, concurrency: Any, poll: Duration, grace: Duration, deaths: Any, alive: Any) -> Options:
    """The arguments of `store.worker`, checked."""
    return Options(
        _count("concurrency", concurrency, CONCURRENCY_MAX),
        seconds(poll, "poll", least=POLL_SECONDS_LEAST),
        seconds(grace, "grace"),
        _count("deaths", deaths, 1 << 31),
        _file(alive),
    )


def _count(what: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise BadInput(f"{what}= is {shown(value)}; give a whole number from 1 to {most}.")
    return value


def _file(alive: Any) -> Path | None:
    if alive is None:
        return None
    if not isinstance(alive, str | os.PathLike) or not os.fspath(cast("str | os.PathLike[str]", alive)):
        raise BadInput(f"alive= is {shown(cast(object, alive))}; give the path of a file to touch.")
    return Path(cast("str | os.PathLike[str]", alive))
