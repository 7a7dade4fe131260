"""How everybody who is not the holder writes: a decision, made inside the store's transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keepstep.engine import rows
from keepstep.engine.context import Engine, Promise
from keepstep.engine.writer import QUIET
from keepstep.errors import KeepstepError, NoSuchRun, RunGone, StoreFailed
from keepstep.log.fold import Folding, thaw
from keepstep.log.grow import Draft, grow
from keepstep.log.records import decode_head
from keepstep.store.base import Append, Committed, Decision, Gone, Outcome, Refused, View

Rule = Callable[[View], Sequence[Draft]]
"""What to append, given the run as it is; nothing when empty; raises to refuse."""

TakeBack = Callable[[View, Append], Sequence[Draft]]
"""What to append once a decision was written whose caller had left: given the run, and what was written."""


def prepare(view: View, drafts: Sequence[Draft], batch: bytes, *, holder: bool = False) -> Append | None:
    """Turn a rule's drafts into an append on the run as it is."""
    if not drafts:
        return None
    row = thaw(view.row) if view.row is not None else Folding()
    after_seq, after_digest = row.seq, row.digest
    grown = grow(row, view.run_id, drafts, now_us=view.now_us, batch=batch, epoch=0, holder=holder)
    moved = any(draft.record.kind not in QUIET for draft in drafts)
    return Append(view.run_id, after_seq, after_digest, grown.records, row, grown.ledger, moved)


class MovedOnError(KeepstepError):
    """Somebody wrote since what a rule rests on was read: read again, and decide again."""


class _OneDecision:
    """A decision in the queue; it is tried once more when nobody knows how it went."""

    def __init__(self, engine: Engine, run_id: str, rule: Rule, *, holder: bool) -> None:
        self._engine = engine
        self._run_id = run_id
        self._rule = rule
        self._holder = holder
        self._batch = engine.ids.batch()
        self._doubt: BaseException | None = None
        self.made: Append | None = None
        """What was decided last."""
        self.is_left = False
        """Whoever wanted it has left: what was not decided yet is not decided any more."""
        self.promise: Promise = engine.runtime.promise()

    def entry(self) -> Decision | None:
        return None if self._doubt is not None else Decision(self._run_id, self._decide)

    def deliver(self, outcome: Outcome | BaseException) -> bool:
        if isinstance(outcome, Committed):
            self._landed(outcome)
        elif isinstance(outcome, Refused):
            self.promise.fail(outcome.error)
        elif isinstance(outcome, Gone):
            self.promise.fail(RunGone(self._run_id))
        elif isinstance(outcome, InterruptedError) and self.made is None:
            return True  # nothing was decided, so nothing written
        elif isinstance(outcome, BaseException):
            if self.made is None or (isinstance(outcome, KeepstepError) and not isinstance(outcome, StoreFailed)):
                self.promise.fail(outcome)
                return False
            self._doubt = outcome
            return True
        else:
            return True
        return False

    async def recover(self) -> bool:
        """Find out by the batch id whether it was written."""
        assert self.made is not None
        tail = await self._engine.store.records(self._run_id, after=self.made.after_seq, bodies=False, limit=1)
        if tail and decode_head(tail[0].head).batch == self._batch:
            self._landed(Committed(self.made, self._engine.clock.now_us()))
            return False
        doubt, self._doubt = self._doubt, None
        if doubt is not None and not isinstance(doubt, InterruptedError):
            self.promise.fail(doubt)
            return False
        return True

    def failed(self, error: BaseException) -> None:
        self.promise.fail(error)

    def wake(self) -> bool:
        return self.promise.wake()

    def _landed(self, committed: Committed) -> None:
        self.promise.set(committed)

    def _decide(self, view: View) -> Append | None:
        if self.is_left:
            return None
        self.made = prepare(view, self._rule(view), self._batch, holder=self._holder)
        return self.made


async def decide(
    engine: Engine, run_id: str, rule: Rule, *, holder: bool = False, take_back: TakeBack | None = None
) -> Committed:
    """Have a rule decided in the store and written; raises what the rule raises.

    `holder` says that the rule itself has seen to it that the writer may write while the run is held. `take_back` is
    decided next if the caller was interrupted or cancelled while it waited, before anything that is wanted after that;
    without it, a decision whose caller has left is written like any other.
    """
    item = _OneDecision(engine, run_id, rule, holder=holder)
    engine.queue.put(item)
    try:
        return await engine.runtime.wait(engine.queue, item.promise)
    except NoSuchRun:
        raise NoSuchRun(run_id, await rows.near(engine, run_id)) from None
    except Exception:
        raise
    except BaseException:
        if take_back is not None:
            item.is_left = True
            undone: Rule = lambda view: [] if item.made is None else take_back(view, item.made)  # noqa: E731 - a rule in one line
            engine.queue.put(_OneDecision(engine, run_id, undone, holder=False))
            engine.runtime.nudge(engine.queue)
        raise
