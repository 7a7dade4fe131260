"""What a batch will write: every entry is decided, on the rows as they will be, before anything is written.

Memory and directory use it under their lock. It is also the shortest statement of what an append has to pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from keepstep.errors import KeepstepError
from keepstep.log.fold import Fold, decode_fold, encode_fold
from keepstep.store.base import Append, Committed, Conflict, Decision, Entry, Gone, Holder, Outcome, Refused, View


class Kept(NamedTuple):
    """What a store has under a run id: a run, a tombstone, or neither."""

    row: Fold | None
    buried: tuple[int, int]


class Plan:
    """The entries of one transaction, taken in order."""

    def __init__(self, now_us: int, kept: Callable[[str], Kept], holder: Callable[[str], Holder]) -> None:
        self.now_us = now_us
        self.appends: dict[str, list[Append]] = {}
        """What is to be written, by run. Their rows are frozen copies: a writer may change its own meanwhile."""
        self._kept = kept
        self._holder = holder

    def view(self, run_id: str) -> View:
        """The run as it will be after the entries taken so far."""
        row, buried = self._kept(run_id)
        if run_id in self.appends:
            row = self.appends[run_id][-1].row
            assert isinstance(row, Fold)
        holder = self._holder(row.owner) if row is not None and row.owner is not None else None
        return View(run_id, row, holder, buried, self.now_us)

    def take(self, entry: Entry) -> Outcome:
        """Decide one entry; what it writes joins `appends`."""
        view = self.view(entry.run_id)
        if isinstance(entry, Decision):
            try:
                append = entry.decide(view)
            except KeepstepError as error:
                return Refused(error)
        else:
            append = entry
        if append is None:
            return Committed(None, self.now_us)
        obstacle = obstacle_to(append, view)
        if obstacle is not None:
            return obstacle
        frozen = decode_fold(encode_fold(append.row))
        self.appends.setdefault(entry.run_id, []).append(append._replace(row=frozen))
        return Committed(append, self.now_us)


def obstacle_to(append: Append, view: View) -> Conflict | Gone | None:
    """Why these records cannot be written to this run; None when they can."""
    assert append.run_id == view.run_id, "a decision must write to the run that it was shown"
    row = view.row
    lives_before = view.buried[0] if row is None else row.incarnation - 1
    if append.row.incarnation <= lives_before:
        return Gone()
    if row is None:
        return None if append.after_seq == 0 else Conflict()
    if append.after_seq != row.seq or append.after_digest != row.digest:
        return Conflict()
    return None
