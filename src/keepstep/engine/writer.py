"""The one pending tail of a run in this process.

An append is decided on the row *as it will be* once everything before it is written, and numbered, chained and queued
in one step that never waits. What has gathered while a commit was under way goes into the next one as a single append.
If the log turns out to end elsewhere (somebody answered, tagged, cancelled), the writer reads the row, and what is
pending is decided again, in order. If the claim is another's by then, everything pending fails, and whatever comes.
If somebody has asked for the run to be cancelled, nothing new is written: only outcomes, and the end.

    append ──► pending ──entry()──► flight ──deliver()──► done
                  ▲                    │
                  └──── recover() ◄────┘ conflict, or nobody knows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keepstep.engine import rows
from keepstep.engine.context import Engine, Promise
from keepstep.errors import Cancelled, ClaimLost, KeepstepError, RunGone, StoreFailed
from keepstep.log.chain import Stored
from keepstep.log.fold import Fields, Fold, Folding, thaw
from keepstep.log.grow import Draft, grow
from keepstep.log.ledger import LedgerEntry
from keepstep.log.lifecycle import ENDED
from keepstep.log.records import Record, Released, decode_head
from keepstep.store.base import Append, Busy, Committed, Conflict, Gone, Outcome, Refused, View

QUIET = frozenset(("saved", "noted", "began", "returned", "raised", "doubted", "undo_began", "undone", "undo_failed"))
"""Kinds after which every column that lists are searched by is as before."""

FINAL = frozenset((
    "returned", "raised", "doubted", "settled", "witnessed", "undone", "undo_failed",
    "released", "cancelled", "failed", "finished",
))  # fmt: skip
"""Kinds that are written although the run is to be cancelled: how something ended."""

Decide = Callable[[Folding], Sequence[Draft]]


class Pending:
    """One append that somebody waits for."""

    __slots__ = ("batch", "decide", "ledger", "moved", "promise", "records", "rewind", "urgent")

    def __init__(self, decide: Decide, rewind: Callable[[], None] | None, promise: Promise, batch: bytes) -> None:
        self.decide = decide
        self.rewind = rewind
        """Takes back what `decide` changed outside the row."""
        self.promise = promise
        self.batch = batch
        self.records: list[Stored] = []
        self.ledger: list[LedgerEntry] = []
        self.moved = False
        self.urgent = True


class Writer:
    """Writes for the holder of a run."""

    def __init__(
        self, engine: Engine, run_id: str, row: Folding, stop: Callable[[Cancelled], None] = lambda cancelled: None
    ) -> None:
        self.run_id = run_id
        self.row = row
        """The row as it will be once everything pending is written."""
        self.epoch = row.epoch
        self.incarnation = row.incarnation
        self._engine = engine
        self._mutex = engine.runtime.mutex()
        self._end = (row.seq, row.digest)
        self._known_row: Fields = row.copy()
        self._flight_row: Fields = self._known_row
        """The row at that end, and as it will be after the flight."""
        self._pending: list[Pending] = []
        self._flight: list[Pending] = []
        self._queued = False
        self.stale = False
        """The log goes on where this does not know it: it is read before anything is written."""
        self.cancelled: Cancelled | None = None
        """Somebody has asked for the run to be cancelled."""
        self._stop = stop
        """Told of that, once."""
        self.moved: Callable[[], None] | None = None
        """Called, in the heartbeat's thread, when it saw that somebody else has written."""
        self._doubt: BaseException | None = None
        """Why nobody knows whether the flight was written."""
        self._lost: KeepstepError | None = None

    @property
    def lost(self) -> KeepstepError | None:
        """Why this writer can write no more."""
        return self._lost

    def append(self, decide: Decide, rewind: Callable[[], None] | None = None) -> Pending:
        """Decide, number, chain and queue; never waits. Raises what the decision raises."""
        engine = self._engine
        pending = Pending(decide, rewind, engine.runtime.promise(), engine.ids.batch())
        with self._mutex:
            if self._lost is not None:
                raise self._lost
            if not self.stale:
                self._prepare(pending)
                if not pending.records:
                    pending.promise.set(None)
                    return pending
            self._pending.append(pending)
            if not self._queued:
                self._queued = True
                engine.queue.put(self)
        return pending

    async def write(self, decide: Decide, rewind: Callable[[], None] | None = None) -> None:
        """Append, and return when it is durable."""
        await self._engine.runtime.wait(self._engine.queue, self.append(decide, rewind).promise)

    def shut(self) -> None:
        """The claim was given back: nothing more is written through this writer."""
        with self._mutex:
            self._lost = self._lost or ClaimLost(self.run_id, "it was given back")

    def beat(self, seq: int | None, epoch: int) -> None:
        """A heartbeat saw the run: at this seq under this epoch, or (None) no longer as ours."""
        with self._mutex:
            moved = not self._queued and (seq is None or epoch != self.epoch or seq > self._end[0])
            self.stale = self.stale or moved
        if moved and self.moved is not None:
            self.moved()

    async def catch_up(self) -> bool:
        """Read the row, if nothing is pending that will; whether a request to cancel the run was found by that."""
        view, request = await self._read()
        with self._mutex:
            is_newer = view.row is None or view.row.seq >= self._end[0]
            if self._queued or not self.stale or self._lost is not None or not is_newer:
                return False
            return self._take_in(view, request)

    # --- what the commit queue asks ------------------------------------------------------------------------------

    def entry(self) -> Append | None:
        """Everything pending, as one append; None when the log must be read first."""
        with self._mutex:
            if self.stale or not self._pending:
                return None
            flight, self._pending = self._pending, []
            self._flight = flight
            self._flight_row = row = self.row.copy()
            seq, digest = self._end
            if len(flight) == 1:
                one = flight[0]
                return Append(self.run_id, seq, digest, one.records, row, one.ledger, one.moved, urgent=one.urgent)
            records = [record for one in flight for record in one.records]
            ledger = [change for one in flight for change in one.ledger]
            moved = any(one.moved for one in flight)
            urgent = any(one.urgent for one in flight)
            return Append(self.run_id, seq, digest, records, row, ledger, moved, urgent=urgent)

    def deliver(self, outcome: Outcome | BaseException) -> bool:
        """Take in how the flight went."""
        with self._mutex:
            if isinstance(outcome, Committed):
                self._landed()
            elif isinstance(outcome, Gone):
                self._lose(RunGone(self.run_id))
            elif isinstance(outcome, KeepstepError) and not isinstance(outcome, StoreFailed):
                self._fail_all(outcome)  # these say that nothing was written
            else:
                self._turn_back(outcome)
            self._queued = bool(self._pending)
            return self._queued

    async def recover(self) -> bool:
        """Read where the log ends, and decide again what is pending."""
        view, request = await self._read()
        written = await self._written_batches()
        with self._mutex:
            self._sort_out(written)
            self._take_in(view, request)
            self._queued = bool(self._pending)
            return self._queued

    def failed(self, error: BaseException) -> None:
        """The log could not be read: everything pending fails, and the next append tries to read again."""
        with self._mutex:
            self._fail_all(error)
            self._doubt = None
            self._queued = False

    def wake(self) -> bool:
        """Wake one of those who wait."""
        with self._mutex:
            return any(one.promise.wake() for one in (*self._flight, *self._pending))

    # --- inside the mutex ----------------------------------------------------------------------------------------

    def _prepare(self, pending: Pending) -> None:
        if self.row.owner is None and self.row.status not in ENDED:
            raise ClaimLost(self.run_id, "it was given back")
        backup = self.row.copy()
        try:
            drafts = pending.decide(self.row)
            if self.cancelled is not None and not (drafts and all(one.record.kind in FINAL for one in drafts)):
                raise self.cancelled
            grown = grow(
                self.row,
                self.run_id,
                drafts,
                now_us=self._engine.clock.now_us(),
                batch=pending.batch,
                epoch=self.epoch,
                holder=True,
            )
        except BaseException:
            self.row = backup
            if pending.rewind is not None:
                pending.rewind()
            raise
        pending.records, pending.ledger = grown
        pending.moved = any(draft.record.kind not in QUIET for draft in drafts)
        pending.urgent = any(_is_urgent(draft.record) for draft in drafts)

    def _landed(self) -> None:
        # In this order, because Ctrl-C may come between any two lines: what is told twice does no harm, and an end that
        # is too old is found out by the next conflict.
        last = self._flight[-1].records[-1]
        for one in self._flight:
            one.promise.set(None)
        self._flight = []
        self._end = (last.seq, last.digest)
        self._known_row = self._flight_row

    def _turn_back(self, outcome: Any) -> None:
        """What was in flight is pending again, until the log has been read."""
        self._pending = self._flight + self._pending
        self._flight = []
        self.stale = True
        if not isinstance(outcome, Conflict | Busy | Refused):
            self._doubt = outcome

    def _sort_out(self, written: frozenset[bytes]) -> None:
        """Tell those that were written after all; after a failure, fail the others."""
        doubt, self._doubt = self._doubt, None
        known = [one for one in self._pending if one.batch in written]
        for one in known:
            one.promise.set(None)
        self._pending = [one for one in self._pending if one.batch not in written]
        if doubt is not None and not known and not isinstance(doubt, InterruptedError):
            self._fail_all(doubt)

    def _take_in(self, view: View, request: Cancelled | None) -> bool:
        """The log ends here; whether it asks for the run to be cancelled, and that was not known."""
        if view.row is None or view.row.incarnation != self.incarnation:
            self._lose(RunGone(self.run_id))
        elif (view.row.epoch, view.row.status) != (self.epoch, "running"):
            self._lose(ClaimLost(self.run_id, _why(view.row)))
        else:
            if request is not None and self.cancelled is None:
                self.cancelled = request
                self._stop(request)
            self._decide_again(view.row)
            return request is not None and self.cancelled is request
        return False

    def _decide_again(self, row: Fold) -> None:
        for one in reversed(self._pending):
            if one.rewind is not None and one.records:
                one.rewind()
        self.row = thaw(row)
        self._known_row = row
        self._end = (row.seq, row.digest)
        self.stale = False
        pending, self._pending = self._pending, []
        for one in pending:
            try:
                self._prepare(one)
            except (Exception, Cancelled) as error:  # noqa: BLE001 - it is told to the one who waits
                one.promise.fail(error)
                continue
            if one.records:
                self._pending.append(one)
            else:
                one.promise.set(None)

    def _lose(self, error: KeepstepError) -> None:
        self._lost = error
        self._fail_all(error)

    def _fail_all(self, error: BaseException) -> None:
        self.stale = True
        failed = self._flight + self._pending
        for one in reversed(failed):
            if one.rewind is not None and one.records:
                one.rewind()
            one.promise.fail(error)
        self._flight, self._pending = [], []
        self.row = thaw(self._known_row)

    async def _read(self) -> tuple[View, Cancelled | None]:
        """The row as it is, and what it asks for, if that is new."""
        view = await self._engine.store.view(self.run_id)
        if view.row is None or not view.row.cancel or self.cancelled is not None:
            return view, None
        told = await rows.request(self._engine, self.run_id, view.row)
        return view, Cancelled(self.run_id, told["reason"], told["by"])

    async def _written_batches(self) -> frozenset[bytes]:
        tail = await self._engine.store.records(self.run_id, after=self._end[0], bodies=False)
        batches = (decode_head(one.head).batch for one in tail)
        return frozenset(batch for batch in batches if batch is not None)


def _is_urgent(record: Record) -> bool:
    """Whether it must outlive a loss of power. A claim ends with the power, whether it was given back before or not."""
    return not isinstance(record, Released) or record.reason == "waits"


def _why(row: Fold) -> str:
    if row.status == "running":
        return f"{row.owner} claimed it"
    return f"it was taken away, and is {row.status} now"
