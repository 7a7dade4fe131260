"""One effect that is to be undone: durable before its undo is called, and its outcome after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from keepstep.codec.envelope import pack
from keepstep.codec.values import encode
from keepstep.engine.bodies import error_told, result_body
from keepstep.engine.calls import did_not_happen, is_awaited, name_of, policy_of
from keepstep.engine.claims import Claim
from keepstep.engine.context import Engine
from keepstep.engine.doubts import Doubt, Happened, ask_outside
from keepstep.engine.past import Past
from keepstep.engine.rollback.planning import Planned, function_for, was_cut_off
from keepstep.engine.undos import Done
from keepstep.errors import UndoFailed, WrongUse
from keepstep.log.fold import Fields
from keepstep.log.grow import Draft
from keepstep.log.records import UndoBegan, Undone
from keepstep.log.records import UndoFailed as UndoFailedRecord


@dataclass(frozen=True)
class Undo:
    """One effect that is to be undone."""

    past: Past
    function: Callable[..., Any] | None
    """None when somebody knows that it was undone."""
    told: Done
    attempt: int
    carried: dict[str, Any]
    """What every record of it has, so that the next try finds it."""
    began: list[Draft]
    is_asked: bool
    """An earlier try was cut off: whether it was done is asked first."""

    def begins(self, row: Fields) -> list[Draft]:
        """What is durable before it is called."""
        return self.began

    async def carry_out(self, claim: Claim, *, is_begun: bool) -> None:
        """Undo it, once."""
        if not is_begun:
            await claim.writer.write(self.begins)
        if self.function is None:
            return
        if self.is_asked and await self._was_done(claim):
            return
        try:
            value = await claim.engine.runtime.call(partial(self.function, self.told))
        except Exception as error:
            in_doubt = not did_not_happen(error, policy_of(self.function).not_done or ())
            await self._failed(claim, error, in_doubt=in_doubt)
            if not in_doubt or policy_of(self.function).reconcile is None:
                raise self._error(claim, in_doubt=in_doubt) from error
            if not await self._was_done(claim, error):
                raise self._error(claim, in_doubt=False) from error
        else:
            await self._undone(claim, value)

    async def _was_done(self, claim: Claim, error: Exception | None = None) -> bool:
        """Ask the outside; what is written then, if it was done. Raises when the outside does not know."""
        assert self.function is not None
        reconcile, told = policy_of(self.function).reconcile, self.told
        assert reconcile is not None, "the plan has looked"
        doubt = Doubt(
            told.run_id, told.key, told.idempotency_key, name_of(self.function), told.target, [told], {}, self.attempt
        )
        answer = await ask_outside(claim.engine, reconcile, doubt)
        if answer is None:
            raise self._error(claim, in_doubt=True) from error
        if isinstance(answer, Happened):
            await self._undone(claim, answer.result)
            return True
        return False

    async def _undone(self, claim: Claim, value: Any) -> None:
        body, _ = result_body(claim.engine, value)
        undone = Draft(Undone(key=self.past.entry.key, began=self.past.entry.began), body)
        await claim.writer.write(lambda row: [undone])

    async def _failed(self, claim: Claim, error: Exception, *, in_doubt: bool) -> None:
        record = UndoFailedRecord(key=self.past.entry.key, began=self.past.entry.began, in_doubt=in_doubt)
        failed = Draft(record, whole(claim.engine, {**error_told(claim.engine, error), **self.carried}))
        await claim.writer.write(lambda row: [failed])

    def _error(self, claim: Claim, *, in_doubt: bool) -> UndoFailed:
        return UndoFailed(claim.run_id, self.past.name, self.past.shown, in_doubt=in_doubt)


def undo_of(engine: Engine, planned: Planned, past: Past) -> Undo:
    """How an effect is to be undone."""
    function = function_for(past, planned)
    if function is not None and engine.runtime.name == "sync" and is_awaited(function):
        raise WrongUse(
            f"{name_of(function)}() is a coroutine function; call rollback on a store of keepstep.open_async(), "
            "or make it a plain one."
        )
    is_again = was_cut_off(past)
    told = _told(
        planned.plan.run_id, past, (past.ended_body.get("undo_key") if is_again else None) or engine.ids.effect()
    )
    attempt = past.ended_body.get("undo_attempt", 0) + 1
    carried = {"undo_key": told.idempotency_key, "undo_attempt": attempt, **outcome_of(past)}
    key, began = past.entry.key, past.entry.began
    begins = Draft(UndoBegan(key=key, began=began, attempt=attempt, to=planned.plan.to_seq), whole(engine, carried))
    if function is None:
        over = Draft(Undone(key=key, began=began))
        return Undo(past, None, told, attempt, carried, [over] if is_again else [begins, over], is_asked=False)
    policy = policy_of(function)
    is_asked = is_again and not policy.idempotent and past.name not in planned.said.not_undone
    return Undo(past, function, told, attempt, carried, [begins], is_asked)


def outcome_of(past: Past) -> dict[str, Any]:
    """The result of an effect, or why it was lost: an undo that was tried before carries it on."""
    return {name: past.ended_body[name] for name in ("result", "lost") if name in past.ended_body}


def whole(engine: Engine, value: Any) -> bytes:
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
        result=past.ended_body.get("result"),
        idempotency_key=idempotency_key,
        effect_idempotency_key=past.began_body.get("idempotency_key") or "",
    )
