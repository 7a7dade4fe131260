"""Every public call of stores and runs, in any order, by several processes that freeze, die and meet failing stores."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.model.claims import Claims
from tests.model.looking import Looking
from tests.model.outside import Outside
from tests.model.plain_runs import Save
from tests.model.processes import Processes
from tests.model.values import LARGE, STATES, Change


class Machine(Claims, Outside, Looking, Processes):
    """All rules together; what they do to a store is in `Pair`."""

    @initialize(state=st.one_of(LARGE, STATES), past=st.sampled_from((0, 0, 0, 35, 70)), is_held=st.booleans())
    def begin(self, state, past, is_held):
        """There are two runs. One is large; it may have a past in many frames, and be held."""
        self._save("a", "r", Change("new", "", 0, state), Save(None), "w")
        self._save("a", "R", Change("new", "", 0, {}), Save(None), "w")
        self.save_many("a", "a", "r", past, "log")
        if is_held:
            self.claim("a", "r", None, 0, block=False)


def machine_on(kind: str, mode: str) -> type[Machine]:
    """The machine that has its store in such a place."""

    class Placed(Machine):
        def __init__(self) -> None:
            super().__init__(kind, mode)

    return Placed
