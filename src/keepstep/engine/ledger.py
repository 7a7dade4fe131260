"""The ledger of a run from outside: reading it, and marking what was done elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keepstep.engine import doubts
from keepstep.engine.bodies import to_body
from keepstep.engine.calls import is_text
from keepstep.engine.checkpoints import check_names, check_needed_names
from keepstep.engine.context import Engine, Limits
from keepstep.engine.decisions import MovedOnError, decide
from keepstep.engine.keys import key_of_name
from keepstep.engine.looks import EffectLook
from keepstep.engine.moments import moment
from keepstep.engine.past import Past, past_of, read
from keepstep.engine.rows import check_id, check_truth, find
from keepstep.errors import BadInput, RunExists, shown
from keepstep.log.grow import Draft
from keepstep.log.ledger import THING
from keepstep.log.records import Began, Inherited, Opened, Raised, Returned
from keepstep.store.base import View

NOT_EFFECTS = frozenset(("saved", "asked", "answered", "expired", "slept", "took", "sent", THING))
"""What else the index finds."""
RETRIES_MAX = 100
"""How often a mark may find that somebody else wrote in between."""
KEY_DIGITS = 32
"""A key without a name is shown as so many hex digits."""


async def effects(engine: Engine, run_id: str) -> list[EffectLook]:
    """Everything in a run's ledger, in the order in which it began."""
    await find(engine, run_id)
    entries = [one for one in await engine.store.effects(run_id, None) if one.how not in NOT_EFFECTS]
    return [_look(past) for past in await read(engine, run_id, entries)]


def _look(past: Past) -> EffectLook:
    began, ended, body = past.began, past.ended, past.began_body
    is_marked = isinstance(began, Returned)
    return EffectLook(
        key=past.name,
        tool=getattr(began, "tool", ""),
        status=_status(past),
        target=body.get("target"),
        attempt=past.attempt,
        step=getattr(began, "step", 0),
        line=getattr(began, "line", 1),
        epoch=began.epoch,
        idempotency_key=body.get("idempotency_key"),
        arguments=body.get("arguments"),
        reversible=began.reversible if isinstance(began, Began) else bool(body.get("reversible")),
        began=moment(began.at_us),
        ended=moment(ended.at_us) if ended is not None else None,
        result=past.ended_body.get("result") if past.is_done else None,
        error=past.ended_body if isinstance(ended, Raised) or past.entry.how == "doubted" else None,
        is_memo=is_marked and "key" not in body,
    )


def _status(past: Past) -> str:
    if past.entry.how == "settled":
        return "returned" if past.is_done else "raised"
    return past.entry.how


async def settle(engine: Engine, run_id: str, key: str, *, happened: bool, result: Any, by: str | None) -> None:
    """Somebody tells whether an effect in doubt happened."""
    check_id(engine.limits, run_id)
    check_truth(happened=happened)
    check_names(engine.limits, by=by)
    digits = key_of(engine.limits, key)
    named = key_of_name(key)
    # A name may be hex digits itself: a tool call's id often is.
    found = named if digits != named and await engine.store.effects(run_id, [named]) else digits
    await doubts.settle(engine, run_id, found, key, happened=happened, result=result, by=by)


def key_of(limits: Limits, text: str) -> bytes:
    """The key that somebody names: as it was given, or as `effects` shows one that has no name."""
    most = 2 * limits.name_bytes + 1  # one that a tool gives is shown behind its name
    if not is_text(text) or len(text) > most:
        raise BadInput(f"key= is {shown(text)}; give it as store.effects() shows it.")
    if len(text) == KEY_DIGITS:
        try:
            return bytes.fromhex(text)
        except ValueError:
            pass
    return key_of_name(text)


async def mark(
    engine: Engine, run_id: str, key: str, *, tool: str, target: str | None, reversible: bool, workflow: str
) -> bool:
    """Note that a tool was run elsewhere; creates the run. False when it is noted already."""
    check_id(engine.limits, run_id)
    check_needed_names(engine.limits, key=key, tool=tool, workflow=workflow)
    check_names(engine.limits, target=target)
    check_truth(reversible=reversible)
    name = key_of_name(key)
    body = to_body(engine, {"key": key, "target": target, "reversible": reversible, "result": None}, "mark")
    for _ in range(RETRIES_MAX):
        row = (await engine.store.view(run_id)).row
        at = (0, 0) if row is None else (row.incarnation, row.seq)
        past = None if row is None else await past_of(engine, run_id, name)
        if past is not None:
            if _is_mark(past, tool):
                return False
            raise RunExists(f"Run {run_id!r} has an effect {key!r} of {past.shown} already; give another key.", run_id)
        try:
            await decide(engine, run_id, _Mark(at, workflow, Draft(Returned(key=name, tool=tool), body)))
        except MovedOnError:
            continue
        return True
    raise RunExists(f"Run {run_id!r} is written all the time; try again.", run_id)


def _is_mark(past: Past, tool: str) -> bool:
    return (
        isinstance(past.began, Returned | Inherited)
        and past.began.tool == tool
        and "idempotency_key" not in past.began_body
    )


class _Mark:
    """The rule of a mark."""

    def __init__(self, at: tuple[int, int], workflow: str, draft: Draft) -> None:
        self._at = at
        self._workflow = workflow
        self._draft = draft

    def __call__(self, view: View) -> Sequence[Draft]:
        at = (0, 0) if view.row is None else (view.row.incarnation, view.row.seq)
        if at != self._at:
            raise MovedOnError(view.run_id)
        if view.row is not None:
            return [self._draft]
        incarnation, epoch = view.buried
        return [Draft(Opened(workflow=self._workflow, incarnation=incarnation + 1, epoch=epoch)), self._draft]
