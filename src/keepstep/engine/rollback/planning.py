"""What a rollback would do, newest effect first, and what stands against it; nothing is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from keepstep.engine.bodies import written_head
from keepstep.engine.calls import name_of, policy_of
from keepstep.engine.context import Engine
from keepstep.engine.history import locate
from keepstep.engine.ledger import NOT_EFFECTS
from keepstep.engine.looks import RollbackItem, RollbackPlan
from keepstep.engine.moments import moment
from keepstep.engine.past import Past, read
from keepstep.engine.rows import find
from keepstep.engine.undos import check_given
from keepstep.engine.undos import find as find_undo
from keepstep.errors import BadInput, RollbackRefused, shown
from keepstep.log.fold import Fold
from keepstep.log.records import Began, Returned, Saved

Undos = Mapping[str, Callable[..., Any]]


class Said(NamedTuple):
    """What the caller says of effects, by their keys."""

    keep: Collection[str]
    """They stay as they are."""
    undone: Collection[str]
    """Somebody knows that they were undone."""
    not_undone: Collection[str]
    """Their undo was cut off, and somebody knows that it was not done."""

    @classmethod
    def of(cls, **given: Any) -> Said:
        """What was said, checked."""
        said = cls(**{what: _keys(what, given.get(what, ())) for what in cls._fields})
        both = [one for one in said.undone if one in said.not_undone]
        if both:
            raise BadInput(f"undone= and not_undone= both name {', '.join(sorted(both))}; it is one or the other.")
        return said


def _keys(what: str, keys: Any) -> Collection[str]:
    if not isinstance(keys, Sequence | AbstractSet) or isinstance(keys, str | bytes):
        raise BadInput(f"{what}= is {shown(keys)}; give a list of keys, as store.effects() shows them.")
    for one in cast("Collection[Any]", keys):
        if not isinstance(one, str):
            raise BadInput(f"{what}= has {shown(one)}, which is no key; store.effects() shows them.")
    return frozenset(cast("Collection[str]", keys))


@dataclass(frozen=True)
class Planned:
    """A plan, and what it was made of."""

    plan: RollbackPlan
    at: tuple[int, int]
    """The run, and how far its log had got."""
    pasts: list[Past]
    """The effects of its items."""
    same: list[Past]
    """Calls that got the result of one of them under another key: their keys become free with it."""
    given: Undos
    said: Said


async def planned(engine: Engine, run_id: str, to: int, said: Said, undo: Any) -> Planned:
    """The plan for a run as it is now."""
    given = check_given(undo)
    if isinstance(to, bool) or not isinstance(to, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"to= is {shown(to)}; give the number of a step.")
    _, row = await find(engine, run_id)
    seq = await _target(engine, run_id, row, to)
    since = await _since(engine, run_id, seq)
    pasts = [past for past in since if _is_effect(past) or is_undone_already(past, row)]
    items = [_item(past, said, given) for past in pasts]
    _check_named(said, items)
    plan = RollbackPlan(run_id, to, seq, items)
    return Planned(plan, (row.incarnation, row.seq), pasts, _same_as(since, said.keep), given, said)


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


# --- what is an effect -----------------------------------------------------------------------------------------------


def _is_effect(past: Past) -> bool:
    """Memos, and what a fork inherited, are none. Nor is what has the result of another: that one is undone."""
    if past.is_free or past.is_alias:
        return False
    return isinstance(past.began, Began) or (_is_named(past) and not _is_borrowed(past))


def is_undone_already(past: Past, row: Fold) -> bool:
    """It was undone by this rollback, before that was cut off."""
    is_undone = past.entry.how == "undone" and isinstance(past.began, Began | Returned) and not past.is_alias
    return is_undone and 0 < row.undoing_from <= past.entry.ended


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


# --- what is to be done about it -------------------------------------------------------------------------------------


def _item(past: Past, said: Said, given: Undos) -> RollbackItem:
    action, why = _action(past, said, given)
    return RollbackItem(
        key=past.name,
        tool=getattr(past.began, "tool", ""),
        target=past.began_body.get("target"),
        began=moment(past.began.at_us),
        action=action,
        why=why,
    )


def _action(past: Past, said: Said, given: Undos) -> tuple[str, str | None]:
    if past.entry.how == "undone":
        return "undone", "before the rollback was cut off"
    if past.name in said.keep:
        return "keep", None
    if past.is_unknown:
        return "cannot", "nobody knows whether it happened; settle it first"
    if past.name in said.undone:
        return "undo", "you say that it was undone"
    name, undo = _undo_of(past, given)
    if undo is None and name is None:
        return "cannot", "nothing undoes it; name it in keep=[...] to leave it as it is"
    if undo is None:
        return "cannot", f"this process does not know {name}(); import the module of the tool, or pass undo={{...}}"
    if not was_cut_off(past) or past.name in said.not_undone or policy_of(undo).idempotent:
        return "undo", None
    if policy_of(undo).reconcile is not None:
        return "undo", f"unless it is found out that {name_of(undo)}(), which was cut off, was done"
    return "doubt", (
        f"nobody knows whether {name_of(undo)}() was done; name it in undone=[...], not_undone=[...] or keep=[...]"
    )


def _undo_of(past: Past, given: Undos) -> tuple[str | None, Callable[..., Any] | None]:
    """What undoes an effect: its name in the log, and the function if this process knows it."""
    name = getattr(past.began, "undo", None)
    return name, find_undo(name or "", getattr(past.began, "tool", ""), given)


def function_for(past: Past, plan: Planned) -> Callable[..., Any] | None:
    """What is called to undo an effect; None when somebody knows that it was undone."""
    if past.name in plan.said.undone:
        return None
    _, undo = _undo_of(past, plan.given)
    assert undo is not None, "the plan has looked"
    return undo


def was_cut_off(past: Past) -> bool:
    """Nobody knows how an undo of it went."""
    return past.entry.how == "undo_began" or getattr(past.ended, "in_doubt", False)


# --- what is refused -------------------------------------------------------------------------------------------------


def _check_named(said: Said, items: Sequence[RollbackItem]) -> None:
    known = {one.key for one in items}
    for what, keys in said._asdict().items():
        unknown = sorted(set(keys) - known)
        if unknown:
            raise BadInput(f"{what}= names {', '.join(unknown)}, which is not among the effects since that step.")


def refuse(before: RollbackPlan) -> None:
    """Refuse a plan against which something stands."""
    hinders = [one for one in before.items if one.action in ("cannot", "doubt")]
    if hinders:
        raise RollbackRefused(before.run_id, before.to_step, [(one.key, one.tool, one.why or "") for one in hinders])
