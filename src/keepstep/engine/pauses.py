"""How a run that has to wait leaves its block: nothing new starts, what is under way ends, and then it rests."""

from __future__ import annotations

from typing import NoReturn

from keepstep.engine.claims import Claim
from keepstep.errors import Pause, WrongUse

DRAIN_SECONDS = 30.0
"""How long the end of a block waits for effects under way in other threads or tasks; after that they are in doubt."""
POLL_SECONDS = 0.01


def pause(claim: Claim) -> NoReturn:
    """The run waits from now on: every later call in it raises the same.

    In a branch of a gather that begins when the gather ends, because the other branches come to their end first.
    """
    raise Pause(claim.run_id) if claim.work.place.branch else claim.work.halt()


def check_outside(claim: Claim, what: str, instead: str) -> None:
    """Refuse to wait inside an effect: it would be cut off by that."""
    if claim.work.place.outer is not None:
        raise WrongUse(f"{what} inside an effect, which would stay in doubt meanwhile. {instead}")


async def drain(claim: Claim) -> None:
    """Wait for the effects under way."""
    left = DRAIN_SECONDS
    while claim.work.flying and left > 0:
        await claim.engine.runtime.pause(POLL_SECONDS)
        left -= POLL_SECONDS
