"""How a run's block ends: what becomes of the run is decided by what leaves the block."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable

from keepstep.engine.bodies import to_body
from keepstep.engine.claims import Claim, close, fail, release
from keepstep.errors import ClaimLost, KeepstepError, RunGone, TooLarge

TRACEBACK_CHARS_MAX = 20_000
"""The end of a traceback tells most."""
MESSAGE_CHARS_MAX = 10_000


async def leave(claim: Claim, error: BaseException | None, interrupts: tuple[type[BaseException], ...]) -> None:
    """Release the run, or record its failure.

    An Exception that leaves the block is a failure of the run. Anything else (Ctrl-C, SystemExit, cancellation,
    `Stop`, the types named in `interrupts`) is an interruption: the run is `ready` for whoever comes next.
    """
    if not claim.open:
        return
    if claim.writer.lost is not None or isinstance(error, ClaimLost | RunGone):
        close(claim)
    elif error is None:
        await release(claim, "left")
    elif isinstance(error, interrupts) or not isinstance(error, Exception):
        await _despite(error, release(claim, "interrupted"))
    else:
        await _despite(error, _fail(claim, error))


async def _fail(claim: Claim, error: BaseException) -> None:
    try:
        body = to_body(claim.engine, error_form(error), "error")
    except TooLarge:
        await release(claim, "interrupted")
        raise
    await fail(claim, type(error).__qualname__, body)


def error_form(error: BaseException) -> dict[str, str]:
    """An error as it is kept: its class, message and traceback, as text."""
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 - a message that cannot be made must not hide the error
        message = f"<no message: {type(broken).__name__}>"
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {
        "type": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": _writable(message[:MESSAGE_CHARS_MAX]),
        "traceback": _writable(text[-TRACEBACK_CHARS_MAX:]),
    }


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


async def _despite(error: BaseException, act: Awaitable[None]) -> None:
    """What is on its way out goes on, whatever the store says to our remark about it."""
    try:
        await act
    except KeepstepError as second:
        error.add_note(f"keepstep could not record this: {second}")
