"""What becomes of a step that raised: tried again after a wait that outlives the process, or the end of the run."""

from __future__ import annotations

from keepstep.engine.bodies import error_told, to_body
from keepstep.engine.claims import Claim
from keepstep.engine.keys import digest
from keepstep.engine.pauses import pause
from keepstep.errors import (
    BadInput,
    ClaimLost,
    Damaged,
    EffectError,
    GateError,
    LeaseTooShort,
    NoSuchStep,
    RunGone,
    StateMismatch,
    StoreBusy,
    StoreFailed,
    StoreFull,
    TooManySteps,
)
from keepstep.flows.backoff import chance_of
from keepstep.flows.steps import Step
from keepstep.log.fold import Fields
from keepstep.log.grow import Draft
from keepstep.log.records import Noted, Slept

SHORT_SECONDS = 2.0
"""A wait up to this is spent holding the run; for a longer one the run is given back, and sleeps."""

LASTING = (
    BadInput, ClaimLost, Damaged, EffectError, GateError, NoSuchStep, RunGone, StateMismatch, TooManySteps,
)  # fmt: skip
"""Errors of keepstep that come again however often a step is tried, or that are a person's to settle."""

STORE_TROUBLE = (StoreBusy, StoreFailed, StoreFull)
"""The store's failures are none of the run's: it is left `ready`, and goes on when the store does."""


def is_tried_again(claim: Claim, step: Step, error: Exception) -> bool:
    """Whether a step that raised this is tried again."""
    if not claim.open or claim.writer.lost is not None or isinstance(error, STORE_TROUBLE):
        return False
    if isinstance(error, LASTING) and not isinstance(error, LeaseTooShort):
        return False
    return claim.row.attempts < step.retries


async def wait_for_another_try(claim: Claim, step: Step, error: Exception) -> None:
    """Record that the step raised, and wait: here if that is short, otherwise the run sleeps (which raises `Pause`)."""
    engine = claim.engine
    attempt = claim.row.attempts + 1
    seconds = step.backoff.seconds(attempt, chance_of(claim.run_id, step.name, claim.row.saved, attempt))
    body = to_body(engine, {**error_told(engine, error), "attempt": attempt, "seconds": seconds}, "error")
    noted = Draft(Noted(namespace="retry", key=step.name), body)
    if seconds <= SHORT_SECONDS:
        await claim.writer.write(lambda row: [noted])
        await engine.runtime.pause(seconds)
        return
    until_us = engine.clock.now_us() + int(seconds * 1e6)

    def fall_asleep(row: Fields) -> list[Draft]:
        key = digest("retry", row.line, row.saved, attempt)
        return [noted, Draft(Slept(key=key, until_us=until_us))]

    await claim.writer.write(fall_asleep)
    await pause(claim)
