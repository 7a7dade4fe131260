"""What `carry` makes of how its function ended."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keepstep.engine import rows
from keepstep.engine.context import Engine
from keepstep.engine.looks import Outcome
from keepstep.engine.shape import Shape
from keepstep.errors import (
    BadInput,
    NoSuchRun,
    NothingToDo,
    RunCancelled,
    RunFinished,
    RunGone,
    RunWaiting,
    Stop,
    WrongUse,
    shown,
)


def refuse_function(function: Callable[..., Any], handle: str) -> None:
    """Refuse what cannot be carried."""
    if not callable(function):
        raise BadInput(f"carry() takes a function of the run, not {shown(function)}.")
    if handle == "sync" and inspect.iscoroutinefunction(function):
        raise WrongUse(
            f"{getattr(function, '__name__', 'The function')}() is a coroutine function; carry it with "
            "keepstep.open_async(), or make it a plain function."
        )


def entered_none(run_id: str, error: NothingToDo) -> Outcome:
    """The outcome when there was nothing to enter."""
    if isinstance(error, RunFinished):
        return Outcome(run_id, "finished", result=error.result)
    if isinstance(error, RunCancelled):
        return Outcome(run_id, "cancelled", error=error)
    if isinstance(error, RunWaiting):
        return Outcome(run_id, "paused" if error.gates else "sleeping", gates=error.gates, until=error.until)
    return Outcome(run_id, "running", until=getattr(error, "until", None), error=error)


@dataclass
class Carried:
    """A run that was entered and left."""

    run_id: str
    interrupts: tuple[type[BaseException], ...]
    error: BaseException | None = None

    def take(self, error: BaseException) -> None:
        """Keep what left the block; raises it again when it is to stop the whole program."""
        if not isinstance(error, (Exception, Stop, *self.interrupts)):
            raise error
        self.error = error

    async def outcome(self, engine: Engine) -> Outcome:
        """How the run was left."""
        try:
            look = await rows.look(engine, Shape(engine.registry), self.run_id)
        except NoSuchRun:
            return Outcome(self.run_id, "deleted", error=self.error or RunGone(self.run_id))
        return Outcome(self.run_id, look.status, look.result, look.gates, look.until, self.error)
