"""Waiting for a run's end, whoever carries it."""

from __future__ import annotations

from typing import Any

from keepstep.engine import rows
from keepstep.engine.bodies import value_at
from keepstep.engine.context import Engine
from keepstep.engine.moments import moment
from keepstep.errors import ResultTimedOut, RunCancelled, RunFailed


async def result(engine: Engine, run_id: str, seconds: float | None) -> Any:
    """What a run returned, once it has ended; raises how it ended otherwise."""
    end_us = None if seconds is None else engine.clock.now_us() + int(seconds * 1e6)
    while True:
        seen = await engine.store.changes(None, 0)
        _, row = await rows.find(engine, run_id)
        match row.status:
            case "finished":
                return await value_at(engine, run_id, row.ended)
            case "failed":
                raise RunFailed(run_id, await value_at(engine, run_id, row.ended) or {})
            case "cancelled":
                told = await rows.request(engine, run_id, row)
                raise RunCancelled(run_id, told["reason"], told["by"])
            case _:
                left = None if end_us is None else (end_us - engine.clock.now_us()) / 1e6
        if (left is not None and left <= 0) or await rows.changed(engine, seen, left) is None:
            gates = [wait.name for wait in row.waits if wait.kind == "gate"] if row.status == "paused" else []
            raise ResultTimedOut(run_id, row.status, gates, moment(row.due_us))
