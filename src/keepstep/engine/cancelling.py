"""Asking for a run to be cancelled: at once when nobody holds it, otherwise a request that its holder obeys.

The holder learns of it from its heartbeat, or when its next append does not fit. From then on nothing new is written in
the run: only how what is under way ended, and then `cancelled`.
"""

from __future__ import annotations

from typing import Any, Literal

from keepstep.engine.bodies import reason_body
from keepstep.engine.checkpoints import check_names
from keepstep.engine.context import Engine
from keepstep.engine.decisions import decide
from keepstep.engine.rows import check_id
from keepstep.errors import NoSuchRun, NotAllowed
from keepstep.log.fold import Fold
from keepstep.log.grow import Draft
from keepstep.log.records import Cancelled, CancelRequested, Released
from keepstep.store.base import View

Answer = Literal["cancelled", "requested"]


async def cancel(engine: Engine, run_id: str, *, reason: Any, by: str | None) -> Answer:
    """Cancel a run that nobody holds; ask the holder of any other to do so."""
    check_id(engine.limits, run_id)
    check_names(engine.limits, by=by)
    rule = _Cancel(reason_body(engine, reason, by))
    await decide(engine, run_id, rule)
    return rule.answer


class _Cancel:
    """The rule of a request."""

    answer: Answer = "cancelled"

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __call__(self, view: View) -> list[Draft]:
        row = view.row
        if row is None:
            raise NoSuchRun(view.run_id)
        if row.status == "finished":
            raise NotAllowed(
                f"Run {view.run_id!r} is finished, so there is nothing to cancel. To undo what it did, roll it back.",
                view.run_id,
            )
        is_held = row.status == "running" and view.holder is not None and view.holder.stands
        self.answer = "requested" if is_held else "cancelled"
        if row.status == "cancelled":
            return []
        return self._asked(row) if is_held else self._ended(row)

    def _asked(self, row: Fold) -> list[Draft]:
        return [] if row.cancel else [Draft(CancelRequested(), self._body)]

    def _ended(self, row: Fold) -> list[Draft]:
        if row.status == "failed":  # no request is open in a run that has ended
            return [Draft(Cancelled(), self._body)]
        released = [Draft(Released(reason="owner_gone"))] if row.status == "running" else []
        return [*released, *self._asked(row), Draft(Cancelled())]
