"""What the sync and the async handle of a claimed run have in common: all that needs no waiting."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from keepstep.api.leaving import but_own, is_own
from keepstep.engine.checkpoints import Tape
from keepstep.engine.claims import Claim
from keepstep.engine.shape import Shape
from keepstep.errors import Pause, StepTimedOut, WrongUse
from keepstep.log.records import TagValue


class Held:
    """A run that this process holds."""

    def __init__(self, claim: Claim, shape: Shape, tape: Tape, interrupts: tuple[type[BaseException], ...]) -> None:
        self._claim = claim
        self._shape = shape
        self._tape = tape
        self._interrupts = interrupts
        self._pid = os.getpid()

    @property
    def id(self) -> str:
        """The run's id."""
        return self._claim.run_id

    @property
    def workflow(self) -> str:
        """The name of its workflow."""
        return self._claim.row.workflow

    @property
    def state(self) -> Any:
        """The state last saved, here or by whoever held the run before; None before the first."""
        return self._tape.state

    @property
    def step(self) -> int | None:
        """The number of the current checkpoint; None before the first."""
        return self._claim.row.step

    @property
    def next(self) -> str | None:
        """What the current checkpoint says is to be done next."""
        return self._claim.row.next

    @property
    def label(self) -> str | None:
        """The current checkpoint's label."""
        return self._claim.row.label

    @property
    def tags(self) -> Mapping[str, TagValue]:
        """The run's tags."""
        return dict(self._claim.row.tags)

    @property
    def epoch(self) -> int:
        """The number of this claim; it grows with every claim of the run."""
        return self._claim.writer.epoch

    @property
    def deaths(self) -> int:
        """How many owners died in this run since its last new checkpoint."""
        return self._claim.row.deaths

    @property
    def is_open(self) -> bool:
        """The run can still be written through this handle."""
        return self._claim.open and self._claim.writer.lost is None

    @property
    def paused(self) -> bool:
        """The run has to wait: its block has ended, or is about to."""
        return isinstance(self._claim.work.latch, Pause) and not self.cancelled

    @property
    def cancelled(self) -> bool:
        """Somebody asked for the run to be cancelled: its block has ended, or is about to."""
        asked = self._claim.open and self._claim.writer.cancelled is not None
        return asked or self._claim.row.status == "cancelled"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r} of {self.workflow!r}, step {self.step}, epoch {self.epoch}>"

    def _is_own(self, error: BaseException | None) -> bool:
        """Whether what leaves the block is this run's own pause or cancelling, which ends there.

        Raises what else there is in a group of which it is a part.
        """
        if error is None:
            return False
        left = but_own(self._claim, error)
        if left is not error and not is_own(self._claim, left):
            raise left from None
        return is_own(self._claim, left)

    def _inherited(self, verb: str) -> Claim:
        """The claim, unless this process got the handle by a fork."""
        if os.getpid() != self._pid:
            raise WrongUse(
                f"run.{verb}() was called in a child process; the run {self.id!r} is held by its parent. "
                "Open the run in the child, or let the parent write."
            )
        return self._claim

    def _claimed(self, verb: str) -> Claim:
        """The claim, or an error that says why this handle cannot write."""
        claim = self._inherited(verb)
        if not claim.open:
            raise WrongUse(f"run.{verb}() was called after run {self.id!r} had been left or finished; open it again.")
        if claim.work.latch is not None:
            raise claim.work.latch
        if claim.writer.lost is not None:
            raise claim.writer.lost
        if claim.timeout is not None and claim.engine.clock.now_us() > claim.timeout[1]:
            raise StepTimedOut(claim.run_id, claim.step or "", claim.timeout[0])
        return claim
