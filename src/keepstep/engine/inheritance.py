"""What a fork gets of its parent's ledger, so that it does not do again what its parent has done.

    returned            the result: the same call, with the same arguments, gets it in the fork
    under way, doubted  in doubt in the fork as well
    raised, undone      nothing: it may be done

A memo is not in it: what is safe to repeat is done afresh.
"""

from __future__ import annotations

from typing import Any, Literal

from keepstep.codec.envelope import pack
from keepstep.codec.values import encode
from keepstep.engine.context import Engine
from keepstep.engine.past import Past, read
from keepstep.errors import BadInput, shown
from keepstep.log.grow import Draft
from keepstep.log.records import Began, Inherited

Inheritance = Literal["ask", "reuse", "fresh"]


def check_inheritance(effects: Any) -> Inheritance:
    """Refuse what is none."""
    if effects not in ("ask", "reuse", "fresh"):
        raise BadInput(f"effects= is {shown(effects)}; give 'ask', 'reuse' or 'fresh'.")
    return effects


async def inherit(engine: Engine, parent_id: str, effects: Inheritance) -> list[Draft]:
    """The records with which a fork begins. With `reuse`, results are good for other arguments too."""
    if effects == "fresh":
        return []
    entries = [one for one in await engine.store.effects(parent_id, None) if one.how in _KEPT]
    found = [
        _inherited(engine, past, any_arguments=effects == "reuse") for past in await read(engine, parent_id, entries)
    ]
    return [draft for draft in found if draft is not None]


_KEPT = frozenset(("began", "returned", "doubted", "settled", "inherited"))


def _inherited(engine: Engine, past: Past, *, any_arguments: bool) -> Draft | None:
    outcome = _outcome(past)
    if outcome is None:
        return None
    began, told = past.began, past.began_body
    body = {name: told[name] for name in ("key", "arguments", "idempotency_key", "target") if name in told}
    if past.is_alias:
        body["key"] = past.name
    if past.is_done:
        body |= {name: past.ended_body[name] for name in ("result", "lost") if name in past.ended_body}
    reversible = getattr(began, "reversible", False) or bool(told.get("reversible"))  # a mark has it in its body
    if reversible:
        body["reversible"] = True
    record = Inherited(
        key=past.entry.key,
        tool=getattr(began, "tool", ""),
        parent_seq=past.entry.began,
        outcome=outcome,
        arguments=None if any_arguments and outcome == "returned" else getattr(began, "arguments", None),
        tool_key=getattr(began, "tool_key", None),
        reversible=reversible,
    )
    # Without the limit of a body: the arguments and the result were each within it.
    return Draft(record, pack(encode(body, engine.registry, "result")))


def _outcome(past: Past) -> str | None:
    """How it stands in the fork; None when the fork may do it, or finds it by the call that it is in doubt with."""
    if past.is_alias and past.is_unknown:
        return None
    if isinstance(past.began, Began | Inherited) or "key" in past.began_body:  # otherwise a memo
        if past.is_done:
            return "returned"
        if past.is_unknown:
            return "open" if past.entry.how == "began" else "doubted"
    return None
