"""Approval of one effect: a gate that shows its final arguments, is good for them alone, and works once.

Its answer is spent by the `began` that names it. Other arguments, or another attempt, are another gate.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, cast

from keepstep.engine.bodies import redacted, to_body, told_arguments
from keepstep.engine.calls import Call
from keepstep.engine.claims import Claim
from keepstep.engine.gates import answer_to, gate_id
from keepstep.engine.keys import digest
from keepstep.engine.pauses import check_outside
from keepstep.engine.work import Standing
from keepstep.errors import GateExpired, Rejected

_NOTE = {"title": "Note", "anyOf": [{"type": "string"}, {"type": "null"}], "default": None}


class Approved(NamedTuple):
    """A call that may be made."""

    call: Call
    """With the arguments as they were approved."""
    answer: int
    """Seq of the answer; 0 when none was needed."""


async def approve(claim: Claim, call: Call, standing: Standing, attempt: int) -> Approved:
    """Ask whether the call may be made, if that is wanted; raises `Rejected`."""
    policy = call.policy
    if policy.approve is None:
        return Approved(call, 0)
    check_outside(claim, f"{call.tool}() has to be approved and was called", "Call it before or after that.")
    key = digest("approval", standing.key, call.arguments, attempt)
    body: dict[str, Any] = {
        "prompt": redacted(claim.engine, policy.approve, "question"),
        "schema": _schema(call),
        "tool": call.tool,
        "target": policy.target,
        "arguments": told_arguments(claim.engine, call.args, call.kwargs),
    }
    if policy.default is not None:
        body["default"] = {"approve": policy.default}
    stored = to_body(claim.engine, body, "question")
    past = await answer_to(claim, key, "approval", stored, expires_seconds=policy.expires_seconds, effect=standing.key)
    if past.entry.how == "expired" and "default" not in past.began_body:
        raise GateExpired(claim.run_id, gate_id(claim.run_id, key))
    source = past.ended_body.get("answer") or past.began_body["default"]
    answer = cast("dict[str, Any]", source)
    if not answer["approve"]:
        raise Rejected(claim.run_id, standing.name, call.shown, past.ended_body.get("by"), answer.get("note"))
    changed = cast("dict[str, Any]", answer.get("arguments") or {})
    return Approved(call.edited(changed, claim.engine.registry) if changed else call, past.entry.ended)


def _schema(call: Call) -> dict[str, Any]:
    """What an approval may say: yes or no, a note, and other arguments by their names."""
    properties: dict[str, Any] = {"approve": {"title": "Approve", "type": "boolean"}, "note": _NOTE}
    names = _parameters(call)
    if names:
        changed: dict[str, Any] = {"type": "object", "properties": {name: {} for name in names}, "required": []}
        properties["arguments"] = {"title": "Other arguments", "anyOf": [changed, {"type": "null"}], "default": None}
    return {"type": "object", "properties": properties, "required": ["approve"], "additionalProperties": False}


def _parameters(call: Call) -> list[str]:
    """The names of the arguments that can be changed."""
    try:
        signature = inspect.signature(call.function)
    except (TypeError, ValueError):
        return []
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, one in signature.parameters.items() if one.kind in plain]
