"""One batch, decided on the rows that its transaction has locked."""

from __future__ import annotations

from collections.abc import Sequence

from keepstep.errors import Damaged
from keepstep.log.fold import Fold
from keepstep.store.base import Busy, Entry, Holder, Outcome, Refused
from keepstep.store.plan import Kept, Plan
from keepstep.store.postgres.reading import Seen


class LeaseWanted(Exception):
    """A decision is to be shown a holder that was not read along: one that an entry before it has named."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


class Batch:
    """What is known of the runs of a batch while it is decided."""

    def __init__(self, seen: Sequence[Seen], locked: set[str]) -> None:
        self.now_us = max((one.now_us for one in seen), default=0)
        self.leases: dict[str, int | None] = {}
        """Owner → until when its lease runs; None for one that nobody knows."""
        self._seen = {one.run_id: one for one in seen}
        self._locked = locked
        self._kept: dict[str, Kept] = {}

    def add(self, seen: Sequence[Seen]) -> None:
        """More runs that were locked."""
        self._seen |= {one.run_id: one for one in seen}
        self._locked |= {one.run_id for one in seen}

    def plan(self) -> Plan:
        """A new plan on what is known."""
        return Plan(self.now_us, self.kept, self._holder)

    def take(self, plan: Plan, entry: Entry) -> Outcome:
        """Decide one entry; one whose run is locked elsewhere waits for its turn."""
        if not self._is_ours(entry.run_id):
            return Busy()
        try:
            return plan.take(entry)
        except Damaged as error:
            return Refused(error)

    def kept(self, run_id: str) -> Kept:
        """The run as it was locked; raises `Damaged`."""
        if run_id not in self._kept:
            seen = self._seen[run_id]
            kept = self._kept[run_id] = seen.kept()
            if kept.row is not None and kept.row.owner is not None:
                self.leases.setdefault(kept.row.owner, seen.until_us)
        return self._kept[run_id]

    def before(self, plan: Plan) -> dict[str, Fold | None]:
        """The rows that the plan changes, as they were."""
        return {run_id: self.kept(run_id).row for run_id in plan.appends}

    def _is_ours(self, run_id: str) -> bool:
        seen = self._seen[run_id]
        return run_id in self._locked if seen.found is not None else seen.free

    def _holder(self, owner: str) -> Holder:
        if owner not in self.leases:
            raise LeaseWanted(owner)
        until_us = self.leases[owner] or 0
        return Holder(owner, until_us, stands=until_us > self.now_us)
