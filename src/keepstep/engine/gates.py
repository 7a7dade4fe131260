"""Gates: questions to people, which pause a run until they are answered.

    asked ──► answered      the first valid answer wins
      └─────► expired       the deadline passed first, by the store's clock; the default stands, if there is one

A run that comes to a question again finds its gate by its key, whatever happened to the process in between. A doubt
about an effect is asked about in the same way; its answer settles it, in the same append.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from keepstep.engine.bodies import redacted, to_body
from keepstep.engine.calls import is_text
from keepstep.engine.checkpoints import check_names
from keepstep.engine.claims import Claim, catch_up
from keepstep.engine.context import Engine
from keepstep.engine.decisions import decide
from keepstep.engine.fields import Form, validate
from keepstep.engine.keys import digest
from keepstep.engine.looks import GateLook, PageOf
from keepstep.engine.moments import moment
from keepstep.engine.past import Past, past_of, read, written_past
from keepstep.engine.pauses import check_outside, pause
from keepstep.engine.rows import check_cursor, check_page, check_truth
from keepstep.errors import (
    AlreadyAnswered,
    BadInput,
    GateExpired,
    InvalidAnswer,
    NoSuchGate,
    NoSuchRun,
    shown,
)
from keepstep.log.chain import DIGEST_BYTES
from keepstep.log.fold import Fields, Fold, Wait
from keepstep.log.grow import Draft
from keepstep.log.ledger import LedgerEntry
from keepstep.log.records import Answered, Asked, Doubted, Expired, Reopened, Settled
from keepstep.store.base import Query, Row, View

POLL_SECONDS_FIRST = 0.02
POLL_SECONDS_MOST = 0.5
NO_DEFAULT: Any = object()

DOUBT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "outcome": {
            "title": "Did it happen?",
            "enum": ["happened", "not_happened", "fail"],
            "description": "happened: it is not run again; not_happened: it is run; fail: the run fails",
        },
        "result": {"title": "Its result, if it happened"},
    },
    "required": ["outcome"],
}


DEATHS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "outcome": {
            "title": "What now?",
            "enum": ["retry", "leave"],
            "description": "retry: it is ready again, and goes on from its last checkpoint; leave: it stays failed",
        },
    },
    "required": ["outcome"],
}


class Question(NamedTuple):
    """What is asked."""

    prompt: str
    form: Form
    expires_seconds: float | None = None
    default: Any = NO_DEFAULT
    name: str | None = None
    """The user's own key for it."""
    waits: bool = False
    """Wait in the process, the claim kept, instead of pausing the run."""


# --- inside the run --------------------------------------------------------------------------------------------------


async def ask(claim: Claim, question: Question) -> Any:
    """The answer, if there is one; otherwise the run pauses here."""
    check_names(claim.engine.limits, key=question.name)
    check_truth(wait=question.waits)
    if not is_text(question.prompt):
        raise BadInput(f"prompt= is {shown(question.prompt)}; give the question, as text.")
    check_outside(claim, "run.ask() was called", "Ask before it.")
    if claim.writer.stale:
        await catch_up(claim)
    body = to_body(claim.engine, _asked(claim.engine, question), "question")
    key = claim.work.ask(claim.row, question.prompt, question.name)  # which counts it: after it nothing is refused
    past = await answer_to(claim, key, "question", body, expires_seconds=question.expires_seconds, waits=question.waits)
    if past.entry.how == "answered":
        return question.form.convert(past.ended_body.get("answer"))
    if "default" in past.began_body:
        return question.form.convert(past.began_body["default"])
    raise GateExpired(claim.run_id, gate_id(claim.run_id, key))


def _asked(engine: Engine, question: Question) -> dict[str, Any]:
    """The question as it is stored."""
    asked: dict[str, Any] = {"prompt": redacted(engine, question.prompt, "question"), "schema": question.form.schema}
    if question.default is NO_DEFAULT:
        return asked
    try:
        default = validate(question.form.schema, redacted(engine, question.default, "answer"))
    except InvalidAnswer as error:
        told = "; ".join(f"{name or 'it'} {problem}" for name, problem in error.problems.items())
        raise BadInput(f"default= is no answer to what fields= asks for: {told}.") from None
    to_body(engine, default, "default")  # or the error would speak of the whole question
    return {**asked, "default": default}


async def answer_to(
    claim: Claim,
    key: bytes,
    about: str,
    body: bytes,
    *,
    expires_seconds: float | None = None,
    effect: bytes | None = None,
    before: Sequence[Draft] = (),
    waits: bool = False,
) -> Past:
    """The gate with this key once it is over; asks, and pauses the run, when it is not."""
    engine = claim.engine
    stood = _stands(claim.row, key)  # looked up before the ledger, in which an answer stays
    past = await past_of(engine, claim.run_id, key)
    if past is None or not (stood or past.entry.ended):  # a run that failed had forgotten its open gates
        until_us = None if expires_seconds is None else engine.clock.now_us() + int(expires_seconds * 1e6)
        record = Asked(gate=gate_id(claim.run_id, key), key=key, about=about, until_us=until_us, effect=effect)
        asked = Draft(record, body)
        await claim.writer.write(lambda row: [*before, asked])
        past = await written_past(engine, claim.run_id, key)
    poll = POLL_SECONDS_FIRST
    while not past.entry.ended:
        if _has_expired(past, engine):
            await claim.writer.write(lambda row: _expire(row, key))
        elif not waits:
            await pause(claim, calls=int(effect is not None))
        else:
            await engine.runtime.pause(poll)
            poll = min(poll * 1.5, POLL_SECONDS_MOST)
            await claim.writer.write(lambda row: [])  # raises if a heartbeat saw that the claim is lost
        past = await written_past(engine, claim.run_id, key)
    return past


def _stands(row: Fields, key: bytes) -> bool:
    return any(wait.key == key for wait in gates_of(row))


def _has_expired(past: Past, engine: Engine) -> bool:
    asked = past.began
    return isinstance(asked, Asked) and asked.until_us is not None and asked.until_us <= engine.clock.now_us()


def _expire(row: Fields, key: bytes) -> list[Draft]:
    """Whoever comes first after the deadline writes that it has passed."""
    return [Draft(Expired(gate=wait.name, key=key, asked=wait.seq)) for wait in gates_of(row) if wait.key == key]


def gates_of(row: Fields) -> list[Wait]:
    """The open gates of a run."""
    return [wait for wait in row.waits if wait.kind == "gate"]


async def ask_about(claim: Claim, past: Past) -> Past:
    """Ask whether an effect in doubt happened: the gate, once it is over."""
    before: list[Draft] = []
    if past.entry.how == "began":  # its process died: from here on the run's row knows of the doubt
        before = [Draft(Doubted(key=past.entry.key, began=past.entry.began, reason="died"))]
    body = {
        "prompt": f"Did {past.shown} happen?",
        "schema": DOUBT_SCHEMA,
        "tool": getattr(past.began, "tool", ""),
        "target": past.began_body.get("target"),
        "arguments": past.began_body.get("arguments"),
        "idempotency_key": past.began_body.get("idempotency_key"),
        "error": past.ended_body or None,
        "began": past.entry.began,
    }
    key = doubt_key(past.entry)
    stored = to_body(claim.engine, body, "question")
    return await answer_to(claim, key, "doubt", stored, effect=past.entry.key, before=before)


def ask_after_deaths(claim: Claim, prompt: str) -> Draft:
    """The question what is to become of a run that is given up; its answer may bring the run back."""
    key = digest("deaths", claim.writer.epoch)
    body = to_body(claim.engine, {"prompt": prompt, "schema": DEATHS_SCHEMA}, "question")
    return Draft(Asked(gate=gate_id(claim.run_id, key), key=key, about="deaths"), body)


def doubt_key(entry: LedgerEntry) -> bytes:
    """The key of the gate about a doubt."""
    return digest("doubt", entry.key, entry.began)


# --- from outside ----------------------------------------------------------------------------------------------------


def gate_id(run_id: str, key: bytes) -> str:
    """A gate's id: it fits into a URL, and names its run."""
    return f"{urlsafe_b64encode(run_id.encode()).decode().rstrip('=')}.{key.hex()}"


def _parts(gate: Any) -> tuple[str, bytes]:
    try:
        name, _, digits = gate.partition(".")
        run_id, key = urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode(), bytes.fromhex(digits)
    except (AttributeError, TypeError, ValueError):
        run_id, key = "", b""
    if not run_id or len(key) != DIGEST_BYTES or gate_id(run_id, key) != gate:  # both decoders forgive too much
        raise BadInput(f"{shown(gate)} is not the id of a gate; store.inbox() shows them.")
    return run_id, key


async def _find(engine: Engine, gate: Any) -> tuple[str, Past]:
    run_id, key = _parts(gate)
    past = await past_of(engine, run_id, key)
    if past is None or not isinstance(past.began, Asked):
        raise NoSuchGate(gate, run_id)
    return run_id, past


async def look(engine: Engine, gate: str) -> GateLook:
    """One gate, open or not."""
    run_id, past = await _find(engine, gate)
    row = (await engine.store.view(run_id)).row
    return _look(run_id, row.workflow if row is not None else "", past)


async def inbox(engine: Engine, *, workflow: str | None, limit: int, cursor: str | None) -> PageOf[GateLook]:
    """The open gates of a page of runs, those first that have waited longest."""
    check_names(engine.limits, workflow=workflow)
    check_page(limit)
    check_cursor(cursor)
    query = Query(workflow=workflow, order="asking", newest_first=False)
    page = await engine.store.rows(query, cursor, limit)
    return PageOf([gate for row in page.rows for gate in await _open(engine, row)], page.next)


async def _open(engine: Engine, row: Row) -> list[GateLook]:
    entries = [LedgerEntry(wait.key, wait.seq, 0, "asked") for wait in gates_of(row.fold)]
    return [_look(row.run_id, row.fold.workflow, past) for past in await read(engine, row.run_id, entries)]


def _look(run_id: str, workflow: str, past: Past) -> GateLook:
    asked, body = past.began, past.began_body
    assert isinstance(asked, Asked), "a gate begins with a question"
    return GateLook(
        id=asked.gate,
        run_id=run_id,
        workflow=workflow,
        about=asked.about,
        status="open" if not past.entry.ended else past.entry.how,
        prompt=body.get("prompt", ""),
        schema=body.get("schema", {}),
        default=body.get("default"),
        asked=moment(asked.at_us),
        until=moment(asked.until_us),
        details={
            name: body[name] for name in ("tool", "target", "arguments", "idempotency_key", "error") if name in body
        },
        answer=past.ended_body.get("answer"),
        by=past.ended_body.get("by"),
        answered=None if past.ended is None else moment(past.ended.at_us),
    )


async def answer(engine: Engine, gate: str, value: Any, by: str | None) -> GateLook:
    """Answer a gate. The first valid answer wins; a second one is told who was first."""
    check_names(engine.limits, by=by)
    run_id, past = await _find(engine, gate)
    asked = past.began
    assert isinstance(asked, Asked)
    _check_open(gate, run_id, past)
    plain = validate(past.began_body.get("schema") or {}, redacted(engine, value, "answer"))
    rule = _Answer(asked, past, plain, to_body(engine, {"answer": plain, "by": by}, "answer"), engine, by)
    await decide(engine, run_id, rule)
    now = await past_of(engine, run_id, past.entry.key)
    if now is None:
        raise NoSuchGate(gate, run_id)
    if not rule.taken:
        _check_open(gate, run_id, now)
        raise NoSuchGate(gate, run_id)  # its run has ended without an answer
    row = (await engine.store.view(run_id)).row
    return _look(run_id, row.workflow if row is not None else "", now)


def _check_open(gate: str, run_id: str, past: Past) -> None:
    if past.ended is None:
        return
    if past.entry.how == "expired":
        raise GateExpired(run_id, gate)
    raise AlreadyAnswered(run_id, gate, past.ended_body.get("by"), moment(past.ended.at_us))


@dataclass
class _Answer:
    """The rule of an answer."""

    asked: Asked
    past: Past
    plain: Any
    body: bytes
    engine: Engine
    by: str | None
    taken: bool = False

    def __call__(self, view: View) -> list[Draft]:
        self.taken = False
        row = view.row
        if row is None:
            raise NoSuchRun(view.run_id)
        wait = next((one for one in gates_of(row) if one.key == self.asked.key), None)
        if wait is None:
            return []
        if wait.until_us is not None and wait.until_us <= view.now_us:
            return [Draft(Expired(gate=wait.name, key=wait.key, asked=wait.seq))]
        self.taken = True
        answered = Draft(Answered(gate=wait.name, key=wait.key, asked=wait.seq), self.body)
        return [answered, *self._settled(row), *self._brought_back(row)]

    def _brought_back(self, row: Fold) -> list[Draft]:
        """What an answer about a run that was given up does."""
        is_wanted = self.asked.about == "deaths" and self.plain["outcome"] == "retry"
        return [Draft(Reopened(reason="answered"))] if is_wanted and row.status == "failed" else []

    def _settled(self, row: Fold) -> list[Draft]:
        """What an answer about a doubt settles."""
        effect = self.asked.effect
        if self.asked.about != "doubt" or effect is None or self.plain["outcome"] == "fail":
            return []
        if not 0 < row.doubts.get(effect, 0) < self.asked.seq:
            return []  # that doubt was settled; if there is one, it is a later one
        happened = self.plain["outcome"] == "happened"
        body = to_body(self.engine, {"result": self.plain.get("result"), "by": self.by}, "answer")
        began = self.past.began_body.get("began", 0)
        return [Draft(Settled(key=effect, began=began, happened=happened), body)]
