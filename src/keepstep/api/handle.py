"""A run that somebody else carries: look at it, and wait for its result; sync and async."""

from __future__ import annotations

from typing import Any

from keepstep.engine import results, rows
from keepstep.engine.context import Engine
from keepstep.engine.looks import Look
from keepstep.engine.shape import Shape
from keepstep.runtime.durations import Duration, seconds
from keepstep.runtime.inline import drive


class _Handle:
    """A run's id, and how it is read."""

    def __init__(self, run_id: str, engine: Engine, shape: Shape) -> None:
        self._run_id = run_id
        self._engine = engine
        self._shape = shape

    @property
    def id(self) -> str:
        """The run's id."""
        return self._run_id

    def __repr__(self) -> str:
        return f"<keepstep.{type(self).__name__} {self._run_id!r}>"


class Handle(_Handle):
    """A run that somebody else carries; from any process."""

    def look(self) -> Look:
        """The run as it stands."""
        return drive(rows.look(self._engine, self._shape, self._run_id))

    def status(self) -> str:
        """The run's status."""
        return drive(rows.find(self._engine, self._run_id))[1].status

    def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the run's end, and return its result.

        Raises `RunFailed` with its error, `RunCancelled`, or after the timeout `ResultTimedOut`, which names the open
        gates.
        """
        return drive(results.result(self._engine, self._run_id, _limit(timeout)))


class AsyncHandle(_Handle):
    """A run that somebody else carries; from any process."""

    async def look(self) -> Look:
        """The run as it stands."""
        return await rows.look(self._engine, self._shape, self._run_id)

    async def status(self) -> str:
        """The run's status."""
        return (await rows.find(self._engine, self._run_id))[1].status

    async def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the run's end, and return its result.

        Raises `RunFailed` with its error, `RunCancelled`, or after the timeout `ResultTimedOut`, which names the open
        gates.
        """
        return await results.result(self._engine, self._run_id, _limit(timeout))


def _limit(timeout: Duration | None) -> float | None:
    return None if timeout is None else seconds(timeout, "timeout")
