"""Going back: the run continues from an earlier checkpoint, on a new line, its effects since then undone.

    plan ──► reopened, claimed ──► undo_began ──► undone        newest first
                                       └────────► undo_failed   the rollback stops here, and can be called again
         ──► rolled_back ──► released

Each undo is in the ledger itself, so that a rollback that was cut off goes on where it stopped, and nothing is undone
twice. While one is under way, the run cannot be entered otherwise. An undo that was cut off is in doubt like any
effect: it is made again only if it says that it may be, or somebody says that it was not made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from keepstep.codec.envelope import pack
from keepstep.codec.values import encode
from keepstep.engine.bodies import result_body, written_head
from keepstep.engine.calls import did_not_happen, is_awaited, name_of, policy_of
from keepstep.engine.claims import Claim, give_back, hold, release
from keepstep.engine.context import Engine
from keepstep.engine.decisions import MovedOnError, decide
from keepstep.engine.error_form import error_form
from keepstep.engine.history import locate
from keepstep.engine.ledger import NOT_EFFECTS
from keepstep.engine.looks import RollbackItem, RollbackPlan
from keepstep.engine.moments import moment
from keepstep.engine.past import Past, read
from keepstep.engine.rows import find
from keepstep.engine.undos import Done, check_given
from keepstep.engine.undos import find as find_undo
from keepstep.errors import (
    BadInput,
    NoSuchRun,
    RollbackRefused,
    RunHeld,
    UndoFailed,
    WrongUse,
    shown,
)
from keepstep.log.fold import Fields, Fold
from keepstep.log.grow import Draft
from keepstep.log.lifecycle import ENDED
from keepstep.log.records import Began, Claimed, Reopened, Returned, RolledBack, Saved, UndoBegan, Undone
from keepstep.log.records import UndoFailed as UndoFailedRecord
from keepstep.store.base import View

Undos = Mapping[str, Callable[..., Any]]
RETRIES_MAX = 100
"""How often a rollback may find that somebody wrote after it was planned."""


async def plan(engine: Engine, run_id: str, to: int, *, keep: Collection[str], undo: Any) -> RollbackPlan:
    """What a rollback would do, newest first; nothing is done."""
    return (await _planned(engine, run_id, to, keep=keep, undo=undo)).plan


async def rollback(
    engine: Engine, run_id: str, to: int, *, keep: Collection[str], undo: Any, undone: Collection[str]
) -> RollbackPlan:
    """Carry the plan out; raises `RollbackRefused` before anything is done, `UndoFailed` when it stops on the way."""
    known = _keys(undone=undone)
    for _ in range(RETRIES_MAX):
        planned = await _planned(engine, run_id, to, keep=keep, undo=undo)
        _refuse(planned.plan, known)
        undos = [_undo_of(engine, planned, *one, known) for one in zip(planned.plan.items, planned.pasts, strict=True)]
        to_do = [one for one in undos if one is not None]
        back = await _back(engine, planned, undos)
        try:
            claim = await _claim(engine, planned, to_do[0].begins if to_do else back.drafts)
        except MovedOnError:
            continue
        try:
            for number, one in enumerate(to_do):
                await one.carry_out(claim, is_begun=number == 0)
            if to_do:
                await claim.writer.write(back.drafts)
        finally:
            await release(claim, "left")
        return back.report
    raise RunHeld(run_id, "others who write all the time")


# --- the plan --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Planned:
    """A plan, and what it was made of."""

    plan: RollbackPlan
    at: tuple[int, int]
    """The run, and how far its log had got."""
    pasts: list[Past]
    """The effects of its items."""
    same: list[Past]
    """Calls that got the result of one of them under another key: their keys become free with it."""
    given: Undos


async def _planned(engine: Engine, run_id: str, to: int, *, keep: Collection[str], undo: Any) -> _Planned:
    kept, given = _keys(keep=keep), check_given(undo)
    if isinstance(to, bool) or not isinstance(to, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"to= is {shown(to)}; give the number of a step.")
    _, row = await find(engine, run_id)
    seq = await _target(engine, run_id, row, to)
    since = await _since(engine, run_id, seq)
    pasts = [past for past in since if _is_effect(past)]
    items = [_item(past, kept, given) for past in pasts]
    _check_keep(kept, items)
    same = _same_as(since, kept)
    return _Planned(RollbackPlan(run_id, to, seq, items), (row.incarnation, row.seq), pasts, same, given)


async def _target(engine: Engine, run_id: str, row: Fold, to: int) -> int:
    """The seq of the checkpoint to go back to; a rollback that was cut off has to go where it was going."""
    if not row.undoing:
        return await locate(engine, run_id, row, step=to, seq=None, label=None)
    head = await written_head(engine, run_id, row.undoing)
    assert isinstance(head, Saved), "a rollback goes to a checkpoint"
    if head.step != to:
        raise BadInput(
            f"A rollback of run {run_id!r} to step {head.step} has begun and was cut off; it has to come to its end "
            f"first. Call it with {head.step}, not {shown(to)}."
        )
    return row.undoing


async def _since(engine: Engine, run_id: str, seq: int) -> list[Past]:
    """What began behind a checkpoint, newest first."""
    entries = [one for one in await engine.store.effects(run_id, None) if one.how not in NOT_EFFECTS]
    return (await read(engine, run_id, [one for one in entries if one.began > seq]))[::-1]


def _is_effect(past: Past) -> bool:
    """Memos, and what a fork inherited, are none. Nor is what has the result of another: that one is undone."""
    if past.is_free or past.is_alias:
        return False
    return isinstance(past.began, Began) or (_is_named(past) and not _is_borrowed(past))


def _is_named(past: Past) -> bool:
    return isinstance(past.began, Returned) and "key" in past.began_body


def _is_borrowed(past: Past) -> bool:
    """It has the result of the same call under another key; a mark has no arguments."""
    return _is_named(past) and getattr(past.began, "arguments", None) is not None


def _same_as(since: Sequence[Past], keep: Collection[str]) -> list[Past]:
    """Those that have, or wait for, the result of an effect that is undone."""
    undone = [one for one in since if isinstance(one.began, Began) and not one.is_alias and one.name not in keep]
    return [past for past in since if past.entry.how != "undone" and any(_is_same(past, one) for one in undone)]


def _is_same(past: Past, real: Past) -> bool:
    if past.is_alias:
        return past.entry.began == real.entry.began
    began, done = past.began, real.began
    if not isinstance(began, Returned) or not isinstance(done, Began) or not _is_borrowed(past):
        return False
    return (began.tool, began.arguments) == (done.tool, done.arguments) and began.seq > done.seq


def _item(past: Past, keep: Collection[str], given: Undos) -> RollbackItem:
    action, why = _action(past, keep, given)
    return RollbackItem(
        key=past.name,
        tool=getattr(past.began, "tool", ""),
        target=past.began_body.get("target"),
        began=moment(past.began.at_us),
        action=action,
        why=why,
    )


def _action(past: Past, keep: Collection[str], given: Undos) -> tuple[str, str | None]:
    if past.name in keep:
        return "keep", None
    if past.is_unknown:
        return "cannot", "nobody knows whether it happened; settle it first"
    name, tool = getattr(past.began, "undo", None), getattr(past.began, "tool", "")
    undo = find_undo(name or "", tool, given)
    if _was_cut_off(past) and (undo is None or not policy_of(undo).idempotent):
        what = name_of(undo) if undo is not None else name or "its undo"
        return "doubt", f"nobody knows whether {what}() was done; name it in undone=[...] or keep=[...]"
    if undo is None and name is None:
        return "cannot", "nothing undoes it; name it in keep=[...] to leave it as it is"
    if undo is None:
        return "cannot", f"this process does not know {name}(); import the module of the tool, or pass undo={{...}}"
    return "undo", None


def _was_cut_off(past: Past) -> bool:
    """Nobody knows how an undo of it went."""
    return past.entry.how == "undo_began" or getattr(past.ended, "in_doubt", False)


def _keys(**given: Any) -> Collection[str]:
    ((what, keys),) = given.items()
    if not isinstance(keys, Sequence | AbstractSet) or isinstance(keys, str | bytes):
        raise BadInput(f"{what}= is {shown(keys)}; give a list of keys, as store.effects() shows them.")
    for one in cast("Collection[Any]", keys):
        if not isinstance(one, str):
            raise BadInput(f"{what}= has {shown(one)}, which is no key; store.effects() shows them.")
    return frozenset(cast("Collection[str]", keys))


def _check_keep(keep: Collection[str], items: Sequence[RollbackItem]) -> None:
    unknown = set(keep) - {one.key for one in items}
    if unknown:
        raise BadInput(f"keep= names {', '.join(sorted(unknown))}, which is not among the effects since that step.")


def _refuse(before: RollbackPlan, undone: Collection[str]) -> None:
    hinders = [
        one for one in before.items if one.action == "cannot" or (one.action == "doubt" and one.key not in undone)
    ]
    if hinders:
        raise RollbackRefused(before.run_id, before.to_step, [(one.key, one.tool, one.why or "") for one in hinders])


# --- carrying it out -------------------------------------------------------------------------------------------------


async def _claim(engine: Engine, planned: _Planned, first: Callable[[Fields], list[Draft]]) -> Claim:
    """Claim the run whatever it waits for, and also when it has ended.

    The first record of the rollback is written with the claim: cut off between the two, a run that had ended would be
    anybody's to go on with.
    """
    owner, run_id = await engine.ownership.owner(), planned.plan.run_id

    def rule(view: View) -> list[Draft]:
        row = view.row
        if row is None:
            raise NoSuchRun(run_id)
        is_left = row.owner == owner and engine.ownership.is_left(run_id, row.epoch, entering=1)
        if row.status == "running" and view.holder is not None and view.holder.stands and not is_left:
            raise RunHeld(run_id, view.holder.owner, moment(view.holder.until_us))
        if (row.incarnation, row.seq) != planned.at:
            raise MovedOnError(run_id)
        reason, epoch = "took_over" if row.status == "running" and not is_left else "rollback", row.epoch + 1
        claimed = Draft(Claimed(owner=owner, epoch=epoch, reason=reason, before=row.owner))
        begins = [Draft(replace(one.record, epoch=epoch), one.body) for one in first(row)]
        return [*([Draft(Reopened(reason="rollback"))] if row.status in ENDED else []), claimed, *begins]

    with engine.ownership.entering(run_id):
        committed = await decide(engine, run_id, rule, holder=True, orphan=partial(give_back, engine, run_id))
        assert committed.append is not None, "a claim is written"
        return hold(engine, run_id, committed.append.row)


@dataclass(frozen=True)
class _Undo:
    """One effect that is to be undone."""

    past: Past
    function: Callable[..., Any] | None
    """None when somebody knows that it was undone."""
    told: Done
    carried: dict[str, Any]
    """What every record of it has, so that the next try finds it."""
    began: list[Draft]

    def begins(self, row: Fields) -> list[Draft]:
        """What is durable before it is called."""
        return self.began

    async def carry_out(self, claim: Claim, *, is_begun: bool) -> None:
        """Undo it, once: `undo_began` is durable before, the outcome after it."""
        if not is_begun:
            await claim.writer.write(self.begins)
        if self.function is None:
            return
        key, began = self.past.entry.key, self.past.entry.began
        try:
            value = await claim.engine.runtime.call(partial(self.function, self.told))
        except Exception as error:
            in_doubt = not did_not_happen(error, policy_of(self.function).not_done or ())
            record = UndoFailedRecord(key=key, began=began, in_doubt=in_doubt)
            failed = Draft(record, _whole(claim.engine, {**error_form(error), **self.carried}))
            await claim.writer.write(lambda row: [failed])
            raise UndoFailed(claim.run_id, self.past.name, self.past.shown, in_doubt=in_doubt) from error
        body, _ = result_body(claim.engine, value)
        undone = Draft(Undone(key=key, began=began), body)
        await claim.writer.write(lambda row: [undone])


def _undo_of(
    engine: Engine, planned: _Planned, item: RollbackItem, past: Past, undone: Collection[str]
) -> _Undo | None:
    """How an effect is to be undone; None when it is kept."""
    if item.action == "keep":
        return None
    function = None
    if item.key not in undone:
        function = find_undo(getattr(past.began, "undo", None) or "", item.tool, planned.given)
        assert function is not None, "the plan has looked"
        if engine.runtime.name == "sync" and is_awaited(function):
            raise WrongUse(
                f"{name_of(function)}() is a coroutine function; call rollback on a store of keepstep.open_async(), "
                "or make it a plain one."
            )
    told = _told(
        planned.plan.run_id,
        past,
        (past.ended_body.get("undo_key") if _was_cut_off(past) else None) or engine.ids.owner(),
    )
    attempt = past.ended_body.get("undo_attempt", 0) + 1
    carried = {"undo_key": told.idempotency_key, "undo_attempt": attempt, "result": told.result}
    key, began = past.entry.key, past.entry.began
    begins = Draft(UndoBegan(key=key, began=began, attempt=attempt, to=planned.plan.to_seq), _whole(engine, carried))
    if function is not None:
        return _Undo(past, function, told, carried, [begins])
    over = Draft(Undone(key=key, began=began))
    return _Undo(past, None, told, carried, [over] if _was_cut_off(past) else [begins, over])


def _whole(engine: Engine, value: Any) -> bytes:
    """A body without the limit: what is in it was within it before."""
    return pack(encode(value, engine.registry, "undo"))


def _told(run_id: str, past: Past, idempotency_key: str) -> Done:
    args, kwargs = past.arguments
    return Done(
        run_id=run_id,
        key=past.name,
        tool=getattr(past.began, "tool", ""),
        target=past.began_body.get("target"),
        args=args,
        kwargs=kwargs,
        result=past.ended_body.get("result"),  # an undo that was tried before carries it on
        idempotency_key=idempotency_key,
        effect_idempotency_key=past.began_body.get("idempotency_key") or "",
    )


@dataclass(frozen=True)
class _Back:
    """The last record of a rollback."""

    report: RollbackPlan
    head: Saved
    jumps: list[tuple[int, int, int]]
    body: bytes
    same: list[Draft]

    def drafts(self, row: Fields) -> list[Draft]:
        """What ends it, on the run as it is."""
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
        )
        return [*self.same, Draft(record, self.body)]


async def _back(engine: Engine, planned: _Planned, undos: Sequence[_Undo | None]) -> _Back:
    outcomes = ["kept" if one is None else "undone" for one in undos]
    items = [replace(item, outcome=how) for item, how in zip(planned.plan.items, outcomes, strict=True)]
    report = replace(planned.plan, items=items)
    head = await written_head(engine, report.run_id, report.to_seq)
    assert isinstance(head, Saved), "the plan has found a checkpoint"
    told = [{"key": one.key, "tool": one.tool, "outcome": one.outcome} for one in items]
    return _Back(
        report,
        head,
        await _jumps(engine, report.run_id, head),
        _whole(engine, {"items": told}),
        [Draft(Undone(key=past.entry.key, began=past.entry.began)) for past in planned.same],
    )


async def _jumps(engine: Engine, run_id: str, head: Saved) -> list[tuple[int, int, int]]:
    """The checkpoint, and those that clearing its depth's lowest bits leads to: the deepest last."""
    found = [(head.seq, head.step, head.depth)]
    while head.jump:
        before = await written_head(engine, run_id, head.jump)
        assert isinstance(before, Saved), "a jump leads to a checkpoint"
        head = before
        found.insert(0, (head.seq, head.step, head.depth))
    return found
