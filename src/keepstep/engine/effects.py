"""Calls to the outside, kept in the run's ledger.

    memo    safe to repeat: called, then its result is recorded; whoever resumes the run gets it without calling
    once    must not repeat: `began` is durable before the call, the outcome after it

        began ──► returned                      the result, for ever
          │ ────► raised                        it certainly did not happen: it may start again
          └ ────► doubted ──► settled           nobody knows: `doubts` finds out, or somebody tells

An exception proves nothing, unless the tool says so. Nor does the death of a process: an effect that began under an
earlier claim and has no outcome is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from msgspec import structs

from keepstep.engine.approvals import approve
from keepstep.engine.bodies import error_told, redacted, result_body, to_body, told_arguments
from keepstep.engine.calls import Call, did_not_happen, is_awaited
from keepstep.engine.checkpoints import check_names
from keepstep.engine.claims import Claim, catch_up
from keepstep.engine.context import Engine
from keepstep.engine.doubts import AGAIN, Happened, Verdict, find_same, give_verdict, witness
from keepstep.engine.keys import PLACE
from keepstep.engine.past import Past, past_of, real_of, written_past
from keepstep.engine.things import thing_of, warn_of_same_thing
from keepstep.engine.undos import know
from keepstep.engine.work import Standing
from keepstep.engine.writer import Decide
from keepstep.errors import (
    ArgumentsChanged,
    BadInput,
    Cancelled,
    ClaimLost,
    LeaseTooShort,
    Rejected,
    RunGone,
    TooLarge,
    WrongUse,
)
from keepstep.log.fold import Fields
from keepstep.log.grow import Draft
from keepstep.log.records import Began, Doubted, Inherited, Raised, Returned

CALLS_ON_THE_SPOT = 3
"""How often a tool that may be called again is called before its error is told: most faults last for a moment."""
PAUSE_SECONDS = 0.2
"""Before the second of these calls; four times as long before each later one."""


@dataclass(frozen=True)
class Effect:
    """What a tool can know about the effect that it is: see `keepstep.effect`."""

    run_id: str
    key: str
    idempotency_key: str
    """Hand it to the provider: it is the same when this effect is called again, and another's for every other."""
    attempt: int
    epoch: int
    lease_left: Callable[[], float]
    """Seconds until another worker may take the run over, unless the lease is renewed."""


CURRENT: ContextVar[Effect | None] = ContextVar("keepstep effect", default=None)


async def memo(claim: Claim, call: Call) -> Any:
    """The result of a call that is safe to repeat, from the ledger if it is there."""
    engine = claim.engine
    _check_handle(claim, call)
    if claim.writer.stale:
        await catch_up(claim)
    if call.policy.approve is not None:
        raise BadInput(f"approve= is for run.using(...).once({call.tool}, ...); a memo is not approved.")
    with claim.work.memo(claim.row, call) as key:
        past = await past_of(engine, claim.run_id, key)
        if past is not None:
            return past.value()
        call.check()
        began_us = engine.clock.now_us()
        value = await engine.runtime.call(partial(call.function, *call.args, **call.kwargs))
        body = to_body(engine, {"result": redacted(engine, value, "result")}, "result")

        def returned(row: Fields) -> list[Draft]:
            took_us = max(0, engine.clock.now_us() - began_us)
            return [_returned_at_once(row, key, call, body, took_us)]

        await claim.writer.write(returned)
        return value


async def once(claim: Claim, call: Call) -> Any:
    """The result of a call that must not repeat: from the ledger, or of the one call that is made."""
    _check_handle(claim, call)
    if claim.writer.stale:
        await catch_up(claim)
    with claim.work.once(claim.row, call) as standing:
        past = await past_of(claim.engine, claim.run_id, standing.key, call.arguments)
        if past is not None and _is_changed(call, past):
            whose = _whose(claim, call, past)
            if whose is None or not past.is_done:
                raise ArgumentsChanged(claim.run_id, standing.name, past.shown, call.shown)
            return await _start(claim, _asking_first(call, past, whose), standing, past.attempt + 1)
        if past is not None and past.is_done:
            return past.value()
        if past is not None and not past.is_free:
            real = await real_of(claim.engine, claim.run_id, past)
            if real is past:
                return await _resume(claim, call, standing, past)
            return await _beside(claim, call, standing, 1, real, is_noted=True)
        attempt = 1 if past is None else past.attempt + 1
        same = await find_same(claim, call)
        if same is None:
            await warn_of_same_thing(claim, call, standing)
        return await (
            _start(claim, call, standing, attempt) if same is None else _beside(claim, call, standing, attempt, same)
        )


async def _resume(claim: Claim, call: Call, standing: Standing, past: Past) -> Any:
    """Go on with an effect of which nobody knows whether it happened."""
    verdict = await give_verdict(claim, call, past)
    if isinstance(verdict, Happened):
        return verdict.result
    again = past.began_body.get("idempotency_key") if verdict is AGAIN else None
    return await _start(claim, call, standing, past.attempt + 1, again)


async def _beside(
    claim: Claim, call: Call, standing: Standing, attempt: int, same: Past, *, is_noted: bool = False
) -> Any:
    """The same call is in doubt under another key: find out about that one instead of starting.

    That this one is in doubt with it is written first: the other may be settled before anybody comes here again.
    """
    if not is_noted:
        body = to_body(claim.engine, {"key": standing.name, "same_as": same.name}, "doubt")
        doubted = Doubted(key=standing.key, began=same.entry.began, reason="same")
        await claim.writer.write(lambda row: [Draft(doubted, body)])
    if same.is_unknown:
        verdict = await give_verdict(claim, call, same)
    else:
        verdict = Happened(same.value()) if same.is_done else None
    if isinstance(verdict, Happened):
        # Under this key as well, or it would start once the doubt is settled and forgotten.
        body = to_body(claim.engine, {"result": verdict.result, "key": standing.name}, "result")
        await claim.writer.write(lambda row: [_returned_at_once(row, standing.key, call, body)])
        return verdict.result
    again = same.began_body.get("idempotency_key") if verdict is AGAIN else None
    return await _start(claim, call, standing, attempt, again)


def _returned_at_once(row: Fields, key: bytes, call: Call, body: bytes, took_us: int = 0) -> Draft:
    """A result that has no `began` of its own: what would stand there stands here."""
    record = Returned(
        key=key, tool=call.tool, arguments=call.arguments, took_us=took_us, step=row.step or 0, line=row.line
    )
    return Draft(record, body)


# --- the call itself -------------------------------------------------------------------------------------------------


async def _start(
    claim: Claim, call: Call, standing: Standing, attempt: int = 1, idempotency_key: str | None = None
) -> Any:
    """Have it approved if that is wanted, write that it begins, call, and write how it went."""
    call.check()
    try:
        call, approval = await approve(claim, call, standing, attempt)
    except Rejected as rejected:
        if call.policy.rejected == "value":
            return rejected
        raise
    last = attempt + CALLS_ON_THE_SPOT - 1
    pause = PAUSE_SECONDS
    while True:
        effect, seq = await _begin(claim, call, standing, attempt, key=idempotency_key, approval=approval)
        try:
            with _inside(claim, effect, standing):
                value = await claim.engine.runtime.call(partial(call.function, *call.args, **call.kwargs))
        except Exception as error:
            verdict = await _failed(claim, call, standing, seq, error)
            if isinstance(verdict, Happened):
                return verdict.result
            if verdict is not AGAIN or attempt >= last:
                raise
        except BaseException:
            _on_the_way_out(claim, partial(_cut_off, standing, seq))
            raise
        else:
            await _returned(claim, call, standing, seq, value)
            return value
        await claim.engine.runtime.pause(pause)
        attempt, idempotency_key, pause = attempt + 1, effect.idempotency_key, pause * 4


async def _begin(
    claim: Claim, call: Call, standing: Standing, attempt: int, *, key: str | None, approval: int
) -> tuple[Effect, int]:
    """Write `began`: from here on the effect may have happened. Its commit is the fence against a lost claim."""
    engine, policy = claim.engine, call.policy
    _check_lease(claim, call)
    idempotency_key = key or engine.ids.effect()
    told: dict[str, Any] = {
        "key": standing.name,
        "idempotency_key": idempotency_key,
        "target": policy.target,
        "arguments": told_arguments(engine, call.args, call.kwargs),
    }
    if call.asked is not None:
        told["asked"] = told_arguments(engine, *call.asked)
    body = to_body(engine, told, "arguments")
    written = [0]

    def began(row: Fields) -> list[Draft]:
        written[0] = row.seq + 1
        record = Began(
            key=standing.key,
            tool=call.tool,
            attempt=attempt,
            step=row.step or 0,
            line=row.line,
            arguments=call.arguments,
            tool_key=thing_of(call),
            approval=approval,
            outer=claim.work.place.outer,
            idempotent=bool(policy.idempotent),
            reversible=policy.undo is not None,
            undo=None if policy.undo is None else know(policy.undo),
        )
        return [Draft(record, body)]

    try:
        await claim.writer.write(began)
    except Exception:
        raise
    except BaseException:
        _on_the_way_out(claim, lambda row: _not_called(standing, written[0], row))
        raise
    left = partial(engine.ownership.lease_left, engine.clock)
    effect = Effect(claim.run_id, standing.name, idempotency_key, attempt, claim.writer.epoch, left)
    return effect, written[0]


@contextmanager
def _inside(claim: Claim, effect: Effect, standing: Standing) -> Generator[None]:
    """While the tool runs: it can ask which effect it is, and what it calls stands under it."""
    current, place = CURRENT.set(effect), PLACE.set(claim.work.inside(standing.key))
    try:
        yield
    finally:
        PLACE.reset(place)
        CURRENT.reset(current)


async def _returned(claim: Claim, call: Call, standing: Standing, seq: int, value: Any) -> None:
    body, unstorable = result_body(claim.engine, value)
    try:
        await claim.writer.write(
            lambda row: [Draft(Returned(key=standing.key, began=seq, tool=call.tool, arguments=call.arguments), body)]
        )
    except (ClaimLost, RunGone):
        await witness(claim, standing.key, seq, outcome="returned", body=body)
        raise
    if unstorable is not None:
        raise unstorable


async def _failed(claim: Claim, call: Call, standing: Standing, seq: int, error: Exception) -> Verdict:
    """Write that the call raised, and what that means."""
    engine, key, kind = claim.engine, standing.key, type(error).__qualname__
    body = _error_body(engine, error)
    certain = did_not_happen(error, call.policy.not_done or ())
    draft = Draft(Raised(key=key, began=seq, error=kind) if certain else Doubted(key=key, began=seq), body)
    try:
        await claim.writer.write(lambda row: [draft])
    except (ClaimLost, RunGone):
        if certain:
            await witness(claim, key, seq, outcome="raised", body=body)
        raise
    if certain:
        return None
    past = await written_past(engine, claim.run_id, key)
    return await give_verdict(claim, call, past, error)


def _error_body(engine: Engine, error: Exception) -> bytes | None:
    try:
        return to_body(engine, error_told(engine, error), "error")
    except TooLarge:
        return None  # what happened is said all the same


def _cut_off(standing: Standing, seq: int, row: Fields) -> list[Draft]:
    """Nobody knows how far a call that was interrupted had come."""
    return [Draft(Doubted(key=standing.key, began=seq, reason="interrupted"))]


def _not_called(standing: Standing, seq: int, row: Fields) -> list[Draft]:
    """Who was interrupted while `began` was written knows that the call was not made."""
    if row.open_effects.get(standing.key) != seq:
        return []
    return [Draft(Raised(key=standing.key, began=seq, error="interrupted"))]


def _on_the_way_out(claim: Claim, decide: Decide) -> None:
    """How a call was cut off is written by whoever writes next: who is on his way out does not wait."""
    try:
        claim.writer.append(decide)
        claim.engine.runtime.nudge(claim.engine.queue)
    except (Exception, Cancelled):  # noqa: BLE001 - without it the effect is open, which is in doubt as well
        return


# --- what is refused -------------------------------------------------------------------------------------------------


def _check_handle(claim: Claim, call: Call) -> None:
    policy = call.policy
    key = policy.key if isinstance(policy.key, str) else None
    check_names(claim.engine.limits, tool=call.tool, key=key, target=policy.target, tool_key=call.tool_key)
    if claim.engine.runtime.name == "sync" and is_awaited(call.function):
        raise WrongUse(
            f"{call.tool}() is a coroutine function; call it on a run of keepstep.open_async(), or make it a plain one."
        )


def _is_changed(call: Call, past: Past) -> bool:
    """Whether the same effect comes with other arguments, which it may do only when nothing of it is left.

    That is so when it was undone, or when a fork was told that what it inherited in doubt has not happened.
    """
    before = getattr(past.began, "arguments", None)
    nothing_left = past.entry.how == "undone" or (past.is_free and isinstance(past.began, Inherited))
    return before is not None and before != call.arguments and not nothing_left


def _whose(claim: Claim, call: Call, past: Past) -> str | None:
    """Who made a call that comes with other arguments now; None when it is this one, which must not change."""
    if isinstance(past.began, Inherited):
        return "The run that this one was forked from"
    is_named = call.policy.key is not None or call.tool_key is not None
    if not is_named and getattr(past.began, "line", claim.row.line) != claim.row.line:
        return "This run, before it went back and kept that,"
    return None


def _asking_first(call: Call, past: Past, whose: str) -> Call:
    """Somebody has to say that a call is another one than that which was made with other arguments."""
    prompt = call.policy.approve or f"{whose} did {past.shown}. Do {call.shown} here?"
    return replace(call, policy=structs.replace(call.policy, approve=prompt))


def _check_lease(claim: Claim, call: Call) -> None:
    least = call.policy.min_lease
    if least is None:
        return
    left = claim.engine.ownership.lease_left(claim.engine.clock)
    if left < least:
        raise LeaseTooShort(claim.run_id, call.tool, left, least)
