"""Several calls at once, each to its end: what one of them raises is raised when all have ended."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context, copy_context
from inspect import isawaitable, iscoroutine
from typing import Any

from keepstep.engine.claims import Claim, catch_up
from keepstep.engine.keys import PLACE
from keepstep.engine.pauses import pause
from keepstep.errors import BadInput, Pause, shown


async def gather(claim: Claim, calls: Sequence[Any]) -> list[Any]:
    """The results, in order."""
    (_check_callables if claim.engine.runtime.name == "sync" else _check_awaitables)(calls)
    if claim.writer.stale:
        await catch_up(claim)
    contexts: list[Context] = []
    for place in claim.work.branches(claim.row, len(calls)):
        context = copy_context()
        context.run(PLACE.set, place)
        contexts.append(context)
    outcomes = await claim.engine.runtime.together(list(zip(calls, contexts, strict=True)))
    errors = [error for _, error in outcomes if error is not None]
    if errors:
        # What interrupts the run is stronger than what fails it.
        first = min(errors, key=lambda error: isinstance(error, Exception))
        if claim.writer.cancelled in errors:
            first = claim.writer.cancelled  # in async, the others were interrupted because of it
        elif isinstance(first, Pause):
            await pause(claim)  # the branches have ended: now the run waits
        _note_others(first, errors)
        raise first
    return [value for value, _ in outcomes]


def _note_others(first: BaseException, errors: Sequence[BaseException]) -> None:
    for other in errors:
        if other is not first:
            first.add_note(f"In the same gather: {type(other).__name__}: {other}")


def _check_callables(calls: Sequence[Any]) -> None:
    for one in calls:
        if not callable(one):
            raise BadInput(
                f"calls: gather() takes functions without arguments, such as lambda: run.memo(...), not {shown(one)}."
            )


def _check_awaitables(calls: Sequence[Any]) -> None:
    wrong = [one for one in calls if not (isawaitable(one) or callable(one))]
    for one in calls if wrong else ():
        if iscoroutine(one):
            one.close()  # or Python would complain that nobody awaited it
    if wrong:
        raise BadInput(
            "calls: gather() takes what can be awaited, such as run.memo(...), or functions that give it, not "
            f"{shown(wrong[0])}."
        )
