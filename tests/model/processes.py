"""What happens to the processes that use a store, and to the store under them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import keepstep
from tests.model.arguments import FAULTS, WHO
from tests.model.plain_store import PlainStore
from tests.model.rules import Rules
from tests.model.values import exact


class Processes(Rules):
    """Time, death and failure."""

    @rule(who=WHO, at=st.integers(1, 6), fault=FAULTS)
    def fail_soon(self, who, at, fault):
        """One of the next operations of this process's store fails, or the process dies in it."""
        self.pair.fail_soon(who, at, fault)

    @rule(who=WHO, seconds=st.sampled_from((None, 0.000001, 1, 9, 29)))
    def pass_time(self, who, seconds):
        """Time passes; without seconds, a process stands still for longer than its lease."""
        if seconds is None:
            self.pair.freeze(who)
        else:
            self.pair.turn(seconds)
        self.pair.check()

    @rule(who=WHO)
    def wake(self, who):
        """A frozen process goes on."""
        self.pair.wake(who)
        self.pair.check()

    @rule(who=WHO, well=st.booleans())
    def end_process(self, who, well):
        """A process ends, in good order or not."""
        self.pair.opened(who)
        if well:
            self.pair.close(who)
        else:
            self.pair.kill(who)
        self.pair.check()

    @precondition(lambda rules: not (rules.pair.folder / "copy").exists())
    @rule(who=WHO)
    def back_up(self, who):
        """The store is copied while it is in use; once, because it takes long to read a copy."""
        target = self.pair.folder / "copy"

        def plain(plain: PlainStore) -> None:
            if self.pair.place.kind in ("memory", "postgres"):
                raise keepstep.WrongUse("it has none")

        if self.pair.do(who, lambda store: store.backup(target), plain) == exact(None):
            self.pair.check_copy(target)
