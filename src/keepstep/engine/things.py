"""What a tool itself calls the thing that it acts upon, and calls which that does not tell apart.

A tool says `key=lambda invoice, **_: invoice.id`, and a model gives each of its calls an id. Two calls under two ids
are two effects; when they are about one invoice, with other arguments, one of the two is probably a mistake.
"""

from __future__ import annotations

import warnings

from keepstep.engine.calls import Call
from keepstep.engine.claims import Claim
from keepstep.engine.keys import digest
from keepstep.engine.past import Past, past_of
from keepstep.engine.work import Standing
from keepstep.errors import RunGone
from keepstep.log.ledger import key_of_thing
from keepstep.log.records import Began, Inherited


class SameThingWarning(UserWarning):
    """A tool is called for the same thing again, under another key and with other arguments."""


def thing_of(call: Call) -> bytes | None:
    """The digest of what the tool itself calls the thing."""
    return None if call.tool_key is None else digest("tool key", call.tool_key)


async def warn_of_same_thing(claim: Claim, call: Call, standing: Standing) -> None:
    """Name the two calls, when the run has another one about the same thing."""
    thing = thing_of(call)
    if thing is None:
        return
    other = await _newest(claim, key_of_thing(call.tool, thing))
    if other is None or other.is_free or other.entry.key == standing.key:
        return
    if getattr(other.began, "arguments", None) == call.arguments:
        return  # the very same call again, which somebody may want
    warnings.warn(
        f"In run {claim.run_id!r}, {call.shown} ({standing.name}) is about the same thing, {call.tool_key!r}, as "
        f"{other.shown} ({other.name}): the tool's key= leaves out what they differ in. Both are made, under two keys.",
        SameThingWarning,
        stacklevel=2,
    )


async def _newest(claim: Claim, key: bytes) -> Past | None:
    """The newest effect about a thing."""
    found = await past_of(claim.engine, claim.run_id, key)
    if found is None:
        return None
    assert isinstance(found.began, Began | Inherited), "only they have a tool's key"
    effect = await past_of(claim.engine, claim.run_id, found.began.key)
    if effect is None:
        raise RunGone(claim.run_id)
    return effect
