"""Waiting for a time or a message, and messages that come before anybody waits for them.

A sleep and a receive are kept under a key like an effect: whoever comes to one again finds the same deadline, and gets
the same message. What a run waits for stands in its row while it waits; a claim takes it away, and the call that still
has to wait puts it there again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keepstep.engine.bodies import redacted, to_body, value_at
from keepstep.engine.checkpoints import check_names, check_needed_names
from keepstep.engine.claims import Claim, catch_up
from keepstep.engine.context import Engine
from keepstep.engine.decisions import MovedOnError, decide
from keepstep.engine.keys import digest
from keepstep.engine.past import Past, past_of
from keepstep.engine.pauses import check_outside, pause
from keepstep.engine.rows import check_id
from keepstep.errors import NoSuchRun, TimedOut, TooLarge
from keepstep.log.fold import Fields
from keepstep.log.grow import Draft
from keepstep.log.records import Sent, Slept, Took
from keepstep.store.base import View

MESSAGES_MAX = 1000
"""Messages that nobody took yet stand in the run's row, which is written with every save."""
RETRIES_MAX = 100
"""How often somebody else may write to the run between looking whether a message was sent before, and sending it."""


# --- inside the run --------------------------------------------------------------------------------------------------


async def sleep_until(claim: Claim, until_us: int | None, seconds: float | None) -> None:
    """Go on at a time; until then the run sleeps, and its block ends."""
    engine = claim.engine
    check_outside(claim, "run.sleep() was called", "Call it before.")
    if claim.writer.stale:
        await catch_up(claim)
    # Not by its time: code that reckons it from the present comes with another one each time, and would never wake.
    key = claim.work.wait(claim.row, "sleep" if until_us is None else "sleep until", "")
    past = await past_of(engine, claim.run_id, key)
    due_us = _deadline(past)
    if due_us is None:
        due_us = until_us if until_us is not None else engine.clock.now_us() + int((seconds or 0) * 1e6)
    if due_us <= engine.clock.now_us():
        return
    await claim.writer.write(lambda row: _waiting(row, Slept(key=key, until_us=due_us)))
    await pause(claim)


async def receive(claim: Claim, name: str, seconds: float | None) -> Any:
    """The next message of a name; until one comes the run sleeps, and its block ends."""
    engine = claim.engine
    check_outside(claim, "run.receive() was called", "Call it before.")
    check_needed_names(engine.limits, name=name)
    if claim.writer.stale:
        await catch_up(claim)
    key = claim.work.wait(claim.row, "receive", name)
    past = await past_of(engine, claim.run_id, key)
    if past is not None and isinstance(past.ended, Took):
        return await _message(claim, name, past.ended)
    due_us = _deadline(past)
    if past is None and seconds is not None:
        due_us = engine.clock.now_us() + int(seconds * 1e6)
    taken: list[Took] = []

    def rule(row: Fields) -> Sequence[Draft]:
        taken.clear()
        sent = next((seq for mail, seq in row.mail if mail == name), 0)
        if sent or (due_us is not None and due_us <= engine.clock.now_us()):
            taken.append(Took(key=key, sent=sent))
            return [Draft(taken[0])]
        return _waiting(row, Slept(key=key, until_us=due_us, message=name))

    await claim.writer.write(rule)
    if not taken:
        await pause(claim)
    return await _message(claim, name, taken[0])


async def _message(claim: Claim, name: str, took: Took) -> Any:
    if not took.sent:
        raise TimedOut(claim.run_id, name)
    return (await value_at(claim.engine, claim.run_id, took.sent))["value"]


def _deadline(past: Past | None) -> int | None:
    return past.began.until_us if past is not None and isinstance(past.began, Slept) else None


def _waiting(row: Fields, record: Slept) -> list[Draft]:
    return [] if any(wait.key == record.key for wait in row.waits) else [Draft(record)]


# --- from outside ----------------------------------------------------------------------------------------------------


async def send(engine: Engine, run_id: str, name: str, value: Any, message_id: str | None) -> bool:
    """Leave a message for a run. With an id of its own it can be sent again safely: False when it was there."""
    check_id(engine.limits, run_id)
    check_names(engine.limits, id=message_id)
    check_needed_names(engine.limits, name=name)
    body = to_body(engine, {"value": redacted(engine, value, "message")}, "message")
    key = None if message_id is None else digest("message", message_id)
    for _ in range(RETRIES_MAX):
        at = (await engine.store.view(run_id)).row
        if key is not None and at is not None and await engine.store.effects(run_id, [key]):
            return False
        rule = _Send((0, 0) if at is None else (at.incarnation, at.seq), Draft(Sent(name=name, message_id=key), body))
        try:
            await decide(engine, run_id, rule)
        except MovedOnError:
            continue
        return True
    raise TooLarge(f"Run {run_id!r} is written all the time, so the message could not be sent; try again.")


class _Send:
    """The rule of a message."""

    def __init__(self, at: tuple[int, int], draft: Draft) -> None:
        self._at = at
        self._draft = draft

    def __call__(self, view: View) -> list[Draft]:
        record = self._draft.record
        assert isinstance(record, Sent), "what is sent is a message"
        if view.row is None:
            raise NoSuchRun(view.run_id)
        if record.message_id is not None and (view.row.incarnation, view.row.seq) != self._at:
            raise MovedOnError(view.run_id)
        if len(view.row.mail) >= MESSAGES_MAX:
            raise TooLarge(
                f"Run {view.run_id!r} has {MESSAGES_MAX} messages that it did not receive; it takes no more."
            )
        return [self._draft]
