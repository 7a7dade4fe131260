"""What a waiting run waits for, and whether that has come."""

from __future__ import annotations

from keepstep.engine.moments import moment
from keepstep.errors import RunWaiting
from keepstep.log.fold import Fold
from keepstep.log.grow import Draft
from keepstep.log.records import Expired
from keepstep.store.base import View


def wake(view: View, row: Fold) -> list[Draft]:
    """What is written before a waiting run that is due is claimed; raises `RunWaiting` when it is not."""
    due = [wait for wait in row.waits if wait.until_us is not None and wait.until_us <= view.now_us]
    if not due:
        gates = [wait.name for wait in row.waits if wait.kind == "gate"]
        raise RunWaiting(view.run_id, gates, moment(row.due_us))
    return [Draft(Expired(gate=wait.name, key=wait.key, asked=wait.seq)) for wait in due if wait.kind == "gate"]
