"""Bringing a run back that has failed."""

from __future__ import annotations

from typing import Any

from keepstep.engine.bodies import reason_body
from keepstep.engine.checkpoints import check_names
from keepstep.engine.context import Engine
from keepstep.engine.decisions import decide
from keepstep.engine.rows import check_id
from keepstep.errors import NoSuchRun, NotAllowed
from keepstep.log.grow import Draft
from keepstep.log.records import Reopened
from keepstep.store.base import View


async def reopen(engine: Engine, run_id: str, *, reason: Any, by: str | None) -> None:
    """Make a failed run ready again: it goes on from its last checkpoint."""
    check_id(engine.limits, run_id)
    check_names(engine.limits, by=by)
    body = reason_body(engine, reason, by)

    def rule(view: View) -> list[Draft]:
        if view.row is None:
            raise NoSuchRun(run_id)
        if view.row.status != "failed":
            raise NotAllowed(
                f"Run {run_id!r} is {view.row.status}; only a failed run is reopened. To run a finished or cancelled "
                "one again, fork it or roll it back.",
                run_id,
            )
        return [Draft(Reopened(reason="asked"), body)]

    await decide(engine, run_id, rule)
