"""What all rules of the machine stand on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from tests.model.pair import Pair
from tests.model.plain_store import PlainStore
from tests.model.told import Raised, outcome


class Rules(RuleBasedStateMachine):
    """A part of the machine."""

    def __init__(self, kind: str, mode: str) -> None:
        super().__init__()
        self.pair = Pair(kind, mode)

    def teardown(self) -> None:
        """Everything is as it should be."""
        self.pair.end(check=sys.exception() is None)

    @property
    def plain(self) -> PlainStore:
        """What should be there now; after a fault it is another one."""
        return self.pair.plain

    def step(self, step: Any, run_id: str) -> Any:
        """A step that is given from where the run stands, as a number."""
        if not isinstance(step, tuple):
            return step
        kept = self.plain.kept.runs.get(run_id)
        return ((kept.step if kept is not None else None) or 0) + step[1]

    def a_step(self, run_id: str, index: int) -> int | None:
        """One of the run's steps; or one that it may not have; or none."""
        kept = self.plain.kept.runs.get(run_id)
        if index < 0 or kept is None or not kept.saves:
            return None if index == -2 else index
        return kept.saves[index % len(kept.saves)][0] if index < 50 else index

    def goes_well(self, who: str, plain: Callable[[PlainStore], Any]) -> bool:
        """Whether nothing can prevent a call."""
        is_armed = self.pair.opened(who).faulty.at > 0
        return not is_armed and not isinstance(outcome(lambda: plain(self.plain.copy())), Raised)
