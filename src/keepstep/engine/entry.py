"""Entering a run whole: the claim, and the state it stands at."""

from __future__ import annotations

from typing import NamedTuple

from keepstep.codec.framer import Framer
from keepstep.engine.checkpoints import Tape, check_names, load
from keepstep.engine.claims import Claim, claim_due, enter, release
from keepstep.engine.context import Engine
from keepstep.engine.rows import check_id
from keepstep.engine.shape import Shape


class Entered(NamedTuple):
    """A claimed run, ready to be worked on."""

    claim: Claim
    tape: Tape


async def enter_run(engine: Engine, shape: Shape, run_id: str, workflow: str | None, wait_seconds: float) -> Entered:
    """Claim a run and read its state."""
    check_id(engine.limits, run_id)
    check_names(engine.limits, workflow=workflow)
    return await _load(engine, shape, await enter(engine, run_id, workflow, wait_seconds))


async def enter_due(engine: Engine, shape: Shape, workflow: str | None, limit: int) -> list[Entered]:
    """Claim runs that are ready, due, or left behind by an owner that is gone, and read their states."""
    check_names(engine.limits, workflow=workflow)
    found = await claim_due(engine, None if workflow is None else [workflow], limit)
    entered: list[Entered] = []
    try:
        for claim in found:
            entered.append(await _load(engine, shape, claim))  # noqa: PERF401 - what was entered is needed below
    except BaseException:
        for claim in found:
            await release(claim, "interrupted")
        raise
    return entered


async def tape_of(engine: Engine, shape: Shape, claim: Claim) -> Tape:
    """Where the run's frames stand, with the state that it stands at."""
    if not claim.row.saved:
        return Tape(Framer.fresh())
    loaded = await load(engine, claim.run_id, claim.row.saved)
    tape = loaded.tape()
    tape.state = shape.read(claim.run_id, loaded.parts, loaded.head.version)
    return tape


async def _load(engine: Engine, shape: Shape, claim: Claim) -> Entered:
    try:
        return Entered(claim, await tape_of(engine, shape, claim))
    except BaseException:
        await release(claim, "unreadable")
        raise
