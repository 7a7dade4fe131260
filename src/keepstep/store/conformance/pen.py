"""Writes appends as an engine does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from keepstep.log.fold import Folding, thaw
from keepstep.log.grow import Draft, grow
from keepstep.log.records import Claimed, Opened, Record, Saved
from keepstep.store.base import Append, View
from keepstep.store.conformance.turned_clock import TurnedClock

_batches = count(1)


class Pen:
    """One writer of one run. It knows only what it wrote itself."""

    def __init__(self, run_id: str, clock: TurnedClock) -> None:
        self.run_id = run_id
        self.clock = clock
        self.row = Folding()

    def append(
        self,
        *drafts: Draft | Record,
        dropped: Sequence[tuple[int, int]] = (),
        renewed: Sequence[tuple[int, bytes]] = (),
        moved: bool = True,
    ) -> Append:
        """Number, chain and fold records."""
        after_seq, after_digest = self.row.seq, self.row.digest
        grown = grow(
            self.row,
            self.run_id,
            [one if isinstance(one, Draft) else Draft(one) for one in drafts],
            now_us=self.clock.now_us(),
            batch=next(_batches).to_bytes(16, "big"),
            epoch=self.row.epoch,
            holder=True,
        )
        row = thaw(self.row)  # as it is now: this pen may write on before the append is committed
        return Append(self.run_id, after_seq, after_digest, grown.records, row, grown.ledger, moved, dropped, renewed)

    def open(
        self,
        workflow: str = "w",
        body: bytes | None = b"input",
        *,
        parent: str | None = None,
        buried: tuple[int, int] = (0, 0),
    ) -> Append:
        """The append that creates the run."""
        opened = Opened(workflow=workflow, parent_run=parent, incarnation=buried[0] + 1, epoch=buried[1])
        return self.append(Draft(opened, body))

    def save(self, body: bytes | None = b"state", *, label: str | None = None, next: str | None = None) -> Append:
        """A checkpoint."""
        step = 1 if self.row.step is None else self.row.step + 1
        return self.append(Draft(Saved(step=step, label=label, next=next, depth=self.row.depth + 1), body))

    def claim(self, owner: str) -> Append:
        """The right to write, for an owner."""
        taken = self.row.status == "running"
        reason = "took_over" if taken else "entered"
        return self.append(Claimed(owner=owner, epoch=self.row.epoch + 1, reason=reason, before=self.row.owner))

    def copy(self) -> Pen:
        """Another writer who knows as much."""
        other = Pen(self.run_id, self.clock)
        other.row = thaw(self.row.freeze())
        return other


def pen_on(view: View, clock: TurnedClock) -> Pen:
    """A writer who knows the run as a decision is shown it."""
    pen = Pen(view.run_id, clock)
    if view.row is not None:
        pen.row = thaw(view.row)
    return pen


def opening(clock: TurnedClock, workflow: str = "w") -> Callable[[View], Append]:
    """A decision that lets a run live, or live again."""

    def decide(view: View) -> Append:
        return pen_on(view, clock).open(workflow, buried=view.buried)

    return decide


def claiming(clock: TurnedClock, owner: str) -> Callable[[View], Append]:
    """A decision that claims whatever it is shown."""
    return lambda view: pen_on(view, clock).claim(owner)
