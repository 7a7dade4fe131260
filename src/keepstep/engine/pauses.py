"""How a run that has to wait leaves its block: nothing new starts, what is under way ends, and then it rests."""

from __future__ import annotations

from typing import NoReturn

from keepstep.engine.claims import Claim
from keepstep.errors import Pause, WrongUse

DRAIN_SECONDS = 30.0
"""How long a pause, and the end of a block, wait for effects under way beside them; after that these are in doubt."""
POLL_SECONDS = 0.01


async def pause(claim: Claim, *, calls: int = 0) -> NoReturn:
    """The run waits from now on: every later call in it raises the same, once the effects under way have ended.

    They have to end first, because whoever started them beside this one may cut them off when this one raises (an
    `asyncio.TaskGroup` does). In a branch of a gather the pause begins when the gather ends, with all of its branches.
    `calls` is 1 when it is a call itself that has to wait.
    """
    place = claim.work.place
    if place.branch:
        raise Pause(claim.run_id)
    latch = claim.work.halt()
    with claim.work.resting(place.depth + calls):
        await drain(claim)
    raise latch


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
