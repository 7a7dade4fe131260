"""Effects of which nobody knows whether they happened, and how that is found out.

In this order: a tool that may be called again is called again, with the same idempotency key; one that can be asked is
asked; otherwise a person is, through a gate, unless the caller wants `EffectInDoubt` instead (`unsure="raise"`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keepstep.engine.bodies import checked, redacted, to_body
from keepstep.engine.calls import Call
from keepstep.engine.claims import Claim
from keepstep.engine.context import Engine
from keepstep.engine.decisions import decide
from keepstep.engine.gates import ask_about, doubt_key, gates_of
from keepstep.engine.past import Past, past_of
from keepstep.engine.things import thing_of
from keepstep.errors import BadInput, EffectInDoubt, NoSuchRun, NotDone, NotInDoubt, RunGone, shown
from keepstep.log.fold import Fields, Fold
from keepstep.log.grow import Draft
from keepstep.log.ledger import LedgerEntry
from keepstep.log.lifecycle import leads_to
from keepstep.log.records import Answered, Began, Inherited, Settled, Witnessed
from keepstep.store.base import View


@dataclass(frozen=True)
class Happened:
    """An effect happened, with this result: what `reconcile` returns when it knows that."""

    result: Any = None


class _Again:
    """The effect may be called again, with the same idempotency key."""


AGAIN: Final = _Again()
Verdict = Happened | _Again | None
"""None: it did not happen."""


@dataclass(frozen=True)
class Doubt:
    """What `reconcile` is told of the effect that it shall find out about."""

    run_id: str
    key: str
    idempotency_key: str
    tool: str
    target: str | None
    args: Sequence[Any]
    kwargs: dict[str, Any]
    attempt: int


Found = Happened | NotDone | type[NotDone] | None
"""What the outside says of an effect in doubt; None when it does not know."""


async def give_verdict(claim: Claim, call: Call, past: Past, error: Exception | None = None) -> Verdict:
    """Find out about an effect in doubt; raises `EffectInDoubt` (from the error that made it so) when nobody knows."""
    if call.policy.idempotent:
        return AGAIN
    if call.policy.reconcile is not None:
        answer = await ask_outside(claim.engine, call.policy.reconcile, _doubt(claim, call, past))
        if isinstance(answer, Happened):
            return await _settle(claim, past, happened=True, result=answer.result)
        if answer is not None:
            return await _settle(claim, past, happened=False, result=None)
    if call.policy.unsure == "raise":
        raise EffectInDoubt(claim.run_id, past.name, past.shown) from error
    await ask_about(claim, past)
    return await _told(claim, past, error)


async def _told(claim: Claim, past: Past, error: Exception | None) -> Verdict:
    """What the answer to the question about a doubt has settled."""
    now = await past_of(claim.engine, claim.run_id, past.entry.key)
    if now is None or now.is_unknown:
        raise EffectInDoubt(claim.run_id, past.name, past.shown) from error
    return Happened(now.value()) if now.is_done else None


def _doubt(claim: Claim, call: Call, past: Past) -> Doubt:
    args, kwargs = past.arguments
    return Doubt(
        claim.run_id,
        past.name,
        past.began_body.get("idempotency_key", ""),
        call.tool,
        past.began_body.get("target"),
        args,
        kwargs,
        past.attempt,
    )


async def ask_outside(engine: Engine, reconcile: Callable[..., Any], doubt: Doubt) -> Found:
    """What a tool's own `reconcile` says of an effect in doubt."""
    answer = await engine.runtime.call(lambda: reconcile(doubt))
    if answer is None or answer is NotDone or isinstance(answer, Happened | NotDone):
        return answer
    raise BadInput(
        f"reconcile= of {doubt.tool} returned {shown(answer)}; return keepstep.Happened(result), keepstep.NotDone, or "
        "None when it does not know."
    )


async def _settle(claim: Claim, past: Past, *, happened: bool, result: Any) -> Verdict:
    """Write what the outside said, unless somebody (a witness, a person) has settled it in the meantime."""
    key, began = past.entry.key, past.entry.began
    body = to_body(claim.engine, {"result": redacted(claim.engine, result, "result")}, "result")
    record = Settled(key=key, began=began, happened=happened, by="reconciled")

    def settled(row: Fields) -> list[Draft]:
        return [Draft(record, body)] if _stands(row, past.entry) else []

    await claim.writer.write(settled)
    now = await past_of(claim.engine, claim.run_id, key)
    return Happened(now.value()) if now is not None and now.is_done else None


# --- the same call under another key ---------------------------------------------------------------------------------


async def find_same(claim: Claim, call: Call) -> Past | None:
    """An effect in doubt that is the same call under another key: same tool, and same arguments or tool key.

    A model that saw a time-out calls again, under a new id: the commonest way to charge a card twice.
    """
    seqs = _unknown(claim, claim.row)
    if not seqs:
        return None
    wanted = thing_of(call)
    for one in await claim.engine.store.pick(claim.run_id, seqs):
        record = checked(claim.run_id, one)
        key = getattr(record, "key", b"")
        past = await past_of(claim.engine, claim.run_id, key)
        began = None if past is None else past.began
        if (
            past is None
            or not past.is_unknown
            or past.is_alias
            or not isinstance(began, Began | Inherited)
            or began.tool != call.tool
        ):
            continue
        if began.arguments == call.arguments or (wanted is not None and began.tool_key == wanted):
            return past
    return None


def _unknown(claim: Claim, row: Fields) -> list[int]:
    """Where effects in doubt were written last: doubts, and what is open and not under way here."""
    left = row.open_effects.keys() - claim.work.known
    return [*row.doubts.values(), *(row.open_effects[key] for key in left)]


# --- from outside ----------------------------------------------------------------------------------------------------


async def settle(
    engine: Engine, run_id: str, key: bytes, name: str, *, happened: bool, result: Any, by: str | None
) -> None:
    """Somebody tells whether an effect in doubt happened."""
    result = redacted(engine, result, "result")
    body = to_body(engine, {"result": result, "by": by}, "result")
    outcome = "happened" if happened else "not_happened"
    past = await past_of(engine, run_id, key)
    if past is None:
        view = await engine.store.view(run_id)
        if view.row is None:
            raise NoSuchRun(run_id)
        raise NotInDoubt(run_id, name, "not in its ledger")

    def rule(view: View) -> list[Draft]:
        if view.row is None:
            raise NoSuchRun(run_id)
        if not _is_in_doubt(view, view.row, past.entry):
            raise NotInDoubt(run_id, name, _status(past, view.row))
        answer = to_body(engine, {"answer": {"outcome": outcome, "result": result}, "by": by}, "result")
        settled = Draft(Settled(key=key, began=past.entry.began, happened=happened), body)
        return [*_close_gate(view.row, past.entry, answer), settled]

    await decide(engine, run_id, rule)


def _close_gate(row: Fold, entry: LedgerEntry, answer: bytes) -> list[Draft]:
    """The question about a doubt that is settled otherwise is answered by that."""
    asked = [wait for wait in gates_of(row) if wait.key == doubt_key(entry)]
    return [Draft(Answered(gate=one.name, key=one.key, asked=one.seq), answer) for one in asked]


def _stands(row: Fields, entry: LedgerEntry) -> bool:
    """Whether nobody knows yet how what this line of the ledger tells of went."""
    return row.doubts.get(entry.key) == entry.ended != 0 or row.open_effects.get(entry.key) == entry.began


def _is_in_doubt(view: View, row: Fold, entry: LedgerEntry) -> bool:
    under_way = view.holder is not None and view.holder.stands and entry.key not in row.doubts
    return _stands(row, entry) and not under_way


def _status(past: Past, row: Fold) -> str:
    return "under way" if past.entry.key in row.open_effects else past.entry.how


async def witness(claim: Claim, key: bytes, began: int, *, outcome: str, body: bytes | None) -> None:
    """A worker that has lost its claim tells how its effect ended: that settles a doubt that is still open."""
    engine, run_id = claim.engine, claim.run_id
    entry = next(iter(await engine.store.effects(run_id, [key])), None)

    def rule(view: View) -> list[Draft]:
        if view.row is None or entry is None or view.row.incarnation != claim.writer.incarnation:
            return []  # a run that was created anew under this id knows nothing of it
        drafts = [Draft(Witnessed(key=key, began=began, outcome=outcome), body)]
        if entry.began == began and _stands(view.row, entry) and leads_to("settled", view.row.status) is not None:
            happened = outcome == "returned"
            told = {"answer": {"outcome": "happened" if happened else "not_happened"}, "by": "witness"}
            drafts += _close_gate(view.row, entry, to_body(engine, told, "answer"))
            drafts.append(Draft(Settled(key=key, began=began, happened=happened, by="witness"), body))
        return drafts

    try:
        await decide(engine, run_id, rule)
    except (NoSuchRun, RunGone):
        return  # the run was deleted: nobody is left to be told
