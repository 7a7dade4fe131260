"""The last record of a rollback, which goes back, and what is written with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from keepstep.engine.bodies import checked, from_body, written_head
from keepstep.engine.context import Engine
from keepstep.engine.looks import RollbackItem, RollbackPlan
from keepstep.engine.past import Past
from keepstep.engine.rollback.planning import Planned
from keepstep.engine.rollback.undo import outcome_of, whole
from keepstep.log.fold import Fields, Fold
from keepstep.log.grow import Draft
from keepstep.log.records import Released, Returned, RolledBack, Saved, Undone


@dataclass(frozen=True)
class End:
    """How a rollback ends."""

    report: RollbackPlan
    head: Saved
    jumps: list[tuple[int, int, int]]
    body: bytes
    before: list[Draft]
    """What becomes of calls that have their result of one that is undone, and of those that are kept after all."""

    def drafts(self, row: Fields) -> list[Draft]:
        """What is written, on the run as it is."""
        head = self.head
        record = RolledBack(
            to=head.seq,
            to_step=head.step,
            line=row.lines + 1,
            next=head.next,
            label=head.label,
            depth=head.depth,
            jumps=self.jumps,
            version=head.version,
            flow_version=head.flow_version,
        )
        return [*self.before, Draft(record, self.body)]


async def end_of(engine: Engine, planned: Planned) -> End:
    """The end of a rollback that does all of its plan."""
    items = [replace(one, outcome="kept" if one.action == "keep" else "undone") for one in planned.plan.items]
    report = replace(planned.plan, items=items)
    head = await written_head(engine, report.run_id, report.to_seq)
    assert isinstance(head, Saved), "the plan has found a checkpoint"
    told = [{name: getattr(one, name) for name in ("key", "tool", "target", "began", "outcome")} for one in items]
    freed = [Draft(Undone(key=past.entry.key, began=past.entry.began)) for past in planned.same]
    kept = [past for past, one in zip(planned.pasts, items, strict=True) if one.outcome == "kept"]
    return End(
        report,
        head,
        await _jumps(engine, report.run_id, head),
        whole(engine, {"items": told}),
        [*freed, *_given_up(engine, kept)],
    )


def stopped_at(report: RollbackPlan, key: str) -> RollbackPlan:
    """The report of a rollback that an undo has stopped: what came behind it was not tried."""
    at = next(number for number, one in enumerate(report.items) if (one.key, one.action) == (key, "undo"))
    behind = [replace(one, outcome="skipped") if one.action == "undo" else one for one in report.items[at + 1 :]]
    return replace(report, items=[*report.items[:at], replace(report.items[at], outcome="failed"), *behind])


def _given_up(engine: Engine, kept: Sequence[Past]) -> list[Draft]:
    """An effect that is kept although its undo was tried has its result again: whoever calls it has to find that."""
    return [
        Draft(
            Returned(
                key=past.entry.key,
                began=past.entry.began,
                tool=getattr(past.began, "tool", ""),
                arguments=getattr(past.began, "arguments", None),
            ),
            whole(engine, outcome_of(past)),
        )
        for past in kept
        if past.entry.how in ("undo_began", "undo_failed")
    ]


async def _jumps(engine: Engine, run_id: str, head: Saved) -> list[tuple[int, int, int]]:
    """The checkpoint, and those that clearing its depth's lowest bits leads to: the deepest last."""
    found = [(head.seq, head.step, head.depth)]
    while head.jump:
        before = await written_head(engine, run_id, head.jump)
        assert isinstance(before, Saved), "a jump leads to a checkpoint"
        head = before
        found.insert(0, (head.seq, head.step, head.depth))
    return found


async def report_of_last(engine: Engine, run_id: str, row: Fold, to: int) -> RollbackPlan | None:
    """The report of a rollback to this step that is the last thing in the log: it was done, and its caller not told."""
    newest = await engine.store.records(run_id, after=max(0, row.seq - 2), until=row.seq, newest_first=True)
    found = [(checked(run_id, one), one.body) for one in newest]
    if found and isinstance(found[0][0], Released):
        found.pop(0)
    if not found:
        return None
    record, body = found[0]
    if not isinstance(record, RolledBack) or record.to_step != to or body is None:
        return None
    told = from_body(engine, body)["items"]
    items = [RollbackItem(**one, action="keep" if one["outcome"] == "kept" else "undo", why=None) for one in told]
    return RollbackPlan(run_id, to, record.to, items)
