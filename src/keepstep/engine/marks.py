"""Notes and tags: remarks that anybody may make, whatever the run does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keepstep.engine.bodies import given_body
from keepstep.engine.claims import Claim
from keepstep.engine.context import Engine
from keepstep.engine.decisions import Rule, decide
from keepstep.engine.rows import check_id, check_tags
from keepstep.errors import BadInput, NoSuchRun, shown
from keepstep.log.fold import Fields
from keepstep.log.grow import Draft
from keepstep.log.records import Noted, Tagged, TagValue
from keepstep.store.base import View


def together(tags: Mapping[str, TagValue | None] | None, more: Mapping[str, TagValue | None]) -> dict[str, Any]:
    """Tags as they may be given: in a dict, by keyword, or both."""
    if tags is not None and not isinstance(tags, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"Tags are given by name, not as {shown(tags)}.")
    return {**(tags or {}), **more}


async def note(claim: Claim, value: Any) -> None:
    """Remark on the progress of a run that is held."""
    body = given_body(claim.engine, value, "note")
    await claim.writer.write(lambda row: [Draft(Noted(namespace="progress"), body)])


async def tag(claim: Claim, tags: Mapping[str, TagValue | None]) -> None:
    """Tag a run that is held."""
    marks = check_tags(claim.engine.limits, tags)

    def decide_tags(row: Fields) -> Sequence[Draft]:
        return _tagged(claim.engine, row, marks)

    await claim.writer.write(decide_tags)


async def tag_unclaimed(engine: Engine, run_id: str, tags: Mapping[str, TagValue | None]) -> None:
    """Tag any run."""
    check_id(engine.limits, run_id)
    marks = check_tags(engine.limits, tags)

    def rule(view: View) -> Sequence[Draft]:
        if view.row is None:
            raise NoSuchRun(run_id)
        return _tagged(engine, view.row, marks)

    await decide(engine, run_id, rule)


async def note_unclaimed(engine: Engine, run_id: str, value: Any) -> None:
    """Remark on any run."""
    check_id(engine.limits, run_id)
    body = given_body(engine, value, "note")
    rule: Rule = lambda view: _noted(view, body)  # noqa: E731 - a rule in one line
    await decide(engine, run_id, rule)


def _noted(view: View, body: bytes) -> Sequence[Draft]:
    if view.row is None:
        raise NoSuchRun(view.run_id)
    return [Draft(Noted(namespace="progress"), body)]


def _tagged(engine: Engine, row: Fields, tags: Mapping[str, TagValue | None]) -> Sequence[Draft]:
    after = {name: value for name, value in {**row.tags, **tags}.items() if value is not None}
    if len(after) > engine.limits.tags:
        raise BadInput(f"That would make {len(after)} tags; a run has at most {engine.limits.tags}.")
    return [Draft(Tagged(tags=dict(tags)))] if tags else []
