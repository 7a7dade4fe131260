"""What stands in a run's log."""

from __future__ import annotations

from typing import Any

from keepstep.log.records import decode_head
from tests.handles import act


def kinds_of(store: Any, run_id: str = "r") -> list[str]:
    """The kinds of its records, in order."""
    return [decode_head(one.head).kind for one in act(store, lambda engine: engine.store.records(run_id))]
