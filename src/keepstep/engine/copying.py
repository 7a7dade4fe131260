"""Moving runs into another store, their logs unchanged.

    here     free ──► released, if its owner is gone ──► noted "moved", cancelled    nobody goes on with it here
    there                        └─ the log up to here ──► one commit ──► read again, and checked

In this order, so that a run is never anybody's in two stores at once: cut off in between, it is nobody's until the
copy is called again, which finds the note and goes on. A run that has ended is only noted, and can be read in both.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from keepstep.engine.bodies import to_body
from keepstep.engine.context import Engine
from keepstep.engine.decisions import MovedOnError, decide
from keepstep.engine.looks import CopiedRun, CopyReport
from keepstep.engine.moments import moment
from keepstep.engine.verify import CHUNK, Findings, verify
from keepstep.errors import Damaged, NoSuchRun, RollbackUnderWay, RunError, RunExists, RunGone, RunHeld
from keepstep.log.chain import Stored, Walk
from keepstep.log.fold import Fold, Folding
from keepstep.log.grow import Draft
from keepstep.log.ledger import ledger_changes
from keepstep.log.records import AnyRecord, Cancelled, Noted, Released, decode_head
from keepstep.store.base import Append, Committed, Query, View

MOVED = "moved"
"""The namespace of the note that says where a run went; its key is the store's URL."""
PAGE = 100
"""Runs that are looked up at once."""
RETRIES_MAX = 100
"""How often somebody may write to a run between reading it and closing it here."""
POLL_SECONDS = 0.5
"""Between two looks at the runs that are held."""

Told = Callable[[CopiedRun], None]


@dataclass
class _Sum:
    """What was done so far."""

    told: Told | None
    counts: dict[str, int] = field(default_factory=lambda: {"copied": 0, "there": 0})
    records: int = 0
    left: list[CopiedRun] = field(default_factory=list[CopiedRun])

    def take(self, one: CopiedRun) -> None:
        """Count one run."""
        self.records += one.records
        if one.outcome in self.counts:
            self.counts[one.outcome] += 1
        else:
            self.left.append(one)
        if self.told is not None:
            self.told(one)

    def report(self) -> CopyReport:
        """All of it."""
        return CopyReport(self.counts["copied"], self.counts["there"], self.records, self.left)


async def copy(
    source: Engine, target: Engine, run_ids: Sequence[str] | None, wait_seconds: float, told: Told | None
) -> CopyReport:
    """Move these runs, or all; those that are held are tried again until the time has passed."""
    done = _Sum(told)
    held = [one async for one in _moved(source, target, _every(source, run_ids), done)]
    end_us = source.clock.now_us() + int(wait_seconds * 1e6)
    while held and source.clock.now_us() < end_us:
        await source.runtime.pause(POLL_SECONDS)
        again = _every(source, [one.run_id for one in held])
        held = [one async for one in _moved(source, target, again, done)]
    for one in held:
        done.take(one)
    return done.report()


async def _moved(
    source: Engine, target: Engine, run_ids: AsyncIterator[str], done: _Sum
) -> AsyncGenerator[CopiedRun, None]:
    """Move these; gives those that are held."""
    async for run_id in run_ids:
        one = await _copied(source, target, run_id)
        if one.outcome == "held":
            yield one
        else:
            done.take(one)


async def _every(source: Engine, run_ids: Sequence[str] | None) -> AsyncGenerator[str, None]:
    for run_id in run_ids or ():
        yield run_id
    cursor: str | None = None
    while run_ids is None:
        page = await source.store.rows(Query(newest_first=False), cursor, PAGE)
        for row in page.rows:
            yield row.run_id
        if page.next is None:
            return
        cursor = page.next


async def _copied(source: Engine, target: Engine, run_id: str) -> CopiedRun:
    """Move one run, or say why it stays."""
    try:
        for _ in range(RETRIES_MAX):
            try:
                return await _copy_one(source, target, run_id)
            except MovedOnError:
                continue
        raise RunHeld(run_id, "others who write all the time")
    except RunHeld as error:
        return CopiedRun(run_id, "held", 0, str(error))
    except (RunError, Damaged) as error:
        return CopiedRun(run_id, "refused", 0, str(error))


async def _copy_one(source: Engine, target: Engine, run_id: str) -> CopiedRun:
    view = await source.store.view(run_id)
    if view.row is None:
        raise NoSuchRun(run_id)
    end, is_marked = await _end(source, target, run_id, view.row)
    log = await _read(source, run_id, end)
    known = await _known(target, run_id, log)
    if known is not None and known >= log.last:
        return CopiedRun(run_id, "there", 0, None)
    if not is_marked:
        await _close(source, target, view, log)
    records = log.records[known or 0 :]
    await _write(target, run_id, log, known or 0)
    checked = await verify(target, run_id, log.digest.hex())
    if not checked.ok:
        raise Damaged(f"Run {run_id!r} was copied, and is damaged in {target.store.url}: {checked.damage[0].what}.")
    return CopiedRun(run_id, "copied", len(records), None)


# --- what is there ---------------------------------------------------------------------------------------------------


@dataclass
class _Log:
    """A log as it was read, whole and checked."""

    records: list[Stored]
    row: Folding

    @property
    def last(self) -> int:
        return self.row.seq

    @property
    def digest(self) -> bytes:
        return self.row.digest


async def _end(source: Engine, target: Engine, run_id: str, row: Fold) -> tuple[int, bool]:
    """How far the log goes that is to be copied, and whether the run was closed here for that before."""
    if row.status not in ("cancelled", "finished"):
        return row.seq, False
    last = await source.store.records(run_id, after=max(0, row.ended - 2), bodies=False)
    notes = [record for record in map(_head, last) if isinstance(record, Noted) and record.namespace == MOVED]
    for note in notes:
        if row.status == "cancelled" and note.seq == row.ended - 1:
            if note.key != target.store.url:
                raise RunExists(f"Run {run_id!r} was moved to {note.key}; copy it from there.", run_id)
            return note.seq - 1, True
        if note.seq == row.seq and note.key == target.store.url:
            return note.seq - 1, True
    return row.seq, False


def _head(one: Stored) -> AnyRecord:
    return decode_head(one.head)


async def _read(source: Engine, run_id: str, end: int) -> _Log:
    findings = Findings(Walk(run_id), run_id)
    records: list[Stored] = []
    while len(records) < end:
        chunk = await source.store.records(run_id, after=findings.walk.seq, until=end, limit=CHUNK)
        if not chunk:
            raise Damaged(f"Run {run_id!r} ends at record {len(records)}; its row knows {end}. See store.verify().")
        for one in chunk:
            findings.take(one)
        records += chunk
    if findings.damage or findings.absent or findings.row is None:
        what = findings.damage[0].what if findings.damage else "a body is missing"
        raise Damaged(f"Run {run_id!r} is damaged, and stays where it is: {what}. See store.verify().")
    return _Log(records, findings.row)


async def _known(target: Engine, run_id: str, log: _Log) -> int | None:
    """How far the other store's log goes, if it is the same; None when it has no such run."""
    view = await target.store.view(run_id)
    if view.row is None:
        if view.buried[0] >= log.row.incarnation:
            raise RunGone(run_id)
        return None
    last = min(view.row.seq, log.last)
    [there] = await target.store.records(run_id, after=last - 1, until=last, bodies=False)
    if there.digest != log.records[last - 1].digest:
        raise RunExists(f"{target.store.url} has another run {run_id!r}; delete that one, or move it away.", run_id)
    return view.row.seq


# --- what is written -------------------------------------------------------------------------------------------------


class _Closing(NamedTuple):
    """The rule that closes a run here."""

    at: tuple[int, bytes]
    body: bytes
    url: str

    def __call__(self, view: View) -> list[Draft]:
        row = view.row
        if row is None:
            raise NoSuchRun(view.run_id)
        if row.undoing:
            raise RollbackUnderWay(view.run_id)
        if row.status == "running" and view.holder is not None and view.holder.stands:
            raise RunHeld(view.run_id, view.holder.owner, moment(view.holder.until_us))
        if (row.seq, row.digest) != self.at:
            raise MovedOnError(view.run_id)
        released = [Draft(Released(reason="owner_gone"))] if row.status == "running" else []
        cancelled = [] if row.status in ("finished", "cancelled") else [Draft(Cancelled(), self.body)]
        return [*released, Draft(Noted(namespace=MOVED, key=self.url), self.body), *cancelled]


async def _close(source: Engine, target: Engine, view: View, log: _Log) -> None:
    """Nobody goes on with the run here; what was written before the note is a part of the log that is copied."""
    url = target.store.url
    told = {"reason": f"moved to {url}", "by": "keepstep.copy", "digest": log.digest.hex()}
    rule = _Closing((log.last, log.digest), to_body(source, told, "note"), url)
    committed = await decide(source, view.run_id, rule)
    assert committed.append is not None, "a note is written"
    first = committed.append.records[0]
    record = decode_head(first.head)
    if isinstance(record, Released):
        findings = Findings(Walk(view.run_id), view.run_id, row=log.row)
        findings.walk.begin_after(log.records[-1])
        findings.take(first)
        log.records.append(first)


async def _write(target: Engine, run_id: str, log: _Log, known: int) -> None:
    """The rest of the log, in one commit: a part of it would look like a run that can be gone on with."""
    records = log.records[known:]
    changes = [change for one in records for change in ledger_changes(decode_head(one.head))]
    before = log.records[known - 1].digest if known else b""
    [outcome] = await target.store.commit([Append(run_id, known, before, records, log.row, changes)])
    if not isinstance(outcome, Committed):
        raise MovedOnError(run_id)
