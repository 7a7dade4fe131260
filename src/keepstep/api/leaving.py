"""How a run's block ends: what becomes of the run is decided by what leaves the block."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast

from keepstep.engine.claims import Claim, close, fail, release
from keepstep.engine.pauses import drain
from keepstep.errors import Cancelled, ClaimLost, KeepstepError, Pause, RunGone, TooLarge


async def leave(claim: Claim, error: BaseException | None, interrupts: tuple[type[BaseException], ...]) -> None:
    """Release the run, or record its failure.

    An Exception that leaves the block is a failure of the run. Anything else (Ctrl-C, SystemExit, cancellation,
    `Stop`, the types named in `interrupts`) is an interruption: the run is `ready` for whoever comes next. A run that
    has to wait is `paused`. A run that somebody wants cancelled is `cancelled`, whatever leaves the block. Effects
    under way in other threads or tasks end first.
    """
    if not claim.open:
        return
    error = None if error is None else but_own(claim, error)
    if claim.writer.lost is not None or isinstance(error, ClaimLost | RunGone):
        close(claim)
        return
    await drain(claim)
    if claim.work.latch is not None and (error is None or isinstance(error, Pause | Cancelled)):
        await release(claim, "waits")
    elif error is None:
        await release(claim, "left")
    elif isinstance(error, interrupts) or not isinstance(error, Exception):
        await _despite(error, release(claim, "interrupted"))
    else:
        await _despite(error, _fail(claim, error))


def is_own(claim: Claim, error: BaseException) -> bool:
    """Whether this is the run's own pause or cancelling."""
    return error is claim.work.latch or error is claim.writer.cancelled


def but_own(claim: Claim, error: BaseException) -> BaseException:
    """What leaves the block besides the run's own pause or cancelling, which a TaskGroup hands over in a group."""
    given: Any = error
    if not isinstance(given, BaseExceptionGroup):
        return error
    own, others = cast("BaseExceptionGroup[BaseException]", given).split(lambda one: is_own(claim, one))
    if own is None:
        return error
    return others or claim.work.latch or claim.writer.cancelled or error


async def _fail(claim: Claim, error: BaseException) -> None:
    try:
        await fail(claim, error)
    except TooLarge:
        await release(claim, "interrupted")
        raise


async def _despite(error: BaseException, act: Awaitable[None]) -> None:
    """What is on its way out goes on, whatever the store says to our remark about it."""
    try:
        await act
    except KeepstepError as second:
        error.add_note(f"keepstep could not record this: {second}")
