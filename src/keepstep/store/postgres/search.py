"""Which statement finds a page of runs, in about the same time however many runs there are.

A list is merged from *sources*, each of which walks along an index in the order of the list and gives a page at most.
Where more than one index would do, the database chooses: it knows how much fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from keepstep.log.lifecycle import STATUSES
from keepstep.store.base import Query
from keepstep.store.cursors import read_cursor
from keepstep.store.postgres.port import Step
from keepstep.store.postgres.statements import Statements
from keepstep.store.postgres.tags import columns_of
from keepstep.store.postgres.texts import after_all, to_bytes

US_MAX = (1 << 63) - 1
WAITING = ("paused", "sleeping")
CLAIM_LOOKS = 64
"""So many runs that others have locked just now are passed over by a claim at once."""

DUE = Query(due=True, order="changed", newest_first=False)


class Asked(NamedTuple):
    """A query as statements take it."""

    sources: Sequence[str]
    filters: Sequence[str]
    values: dict[str, Any]
    tags: int


def page_step(sql: Statements, query: Query, cursor: str | None, most: int, now_us: int | None) -> Step | None:
    """The statement for a page; None when nothing can fit."""
    workflows = None if query.workflow is None else [query.workflow]
    start = None if cursor is None else read_cursor(cursor, query)
    asked = ask(query, workflows, None if start is None else (start[0], to_bytes(start[1])))
    if asked is None:
        return None
    values = {**asked.values, "most": most, "now_us": now_us}
    column = f"{query.order}_us"
    text = sql.listing(
        "list_page", asked.sources, asked.filters, column, newest_first=query.newest_first, tags=asked.tags
    )
    return Step(text, values)


def claim_step(
    sql: Statements, workflows: Sequence[str] | None, start: tuple[int, bytes] | None, limit: int, now_us: int | None
) -> Step:
    """The statement that finds due runs and locks them."""
    asked = ask(DUE, workflows, start)
    assert asked is not None, "there are runs in every status"
    values = {**asked.values, "most": limit + CLAIM_LOOKS, "limit": limit, "now_us": now_us}
    return Step(sql.listing("claim_page", asked.sources, asked.filters, "changed_us", newest_first=False), values)


def ask(query: Query, workflows: Sequence[str] | None, start: tuple[int, bytes] | None) -> Asked | None:
    """The parts of a statement, and its values; None when nothing can fit."""
    statuses = [one for one in STATUSES if not query.status or one in query.status]
    tags = columns_of(query.tags)
    sources = _sources(query, statuses, workflows)
    if tags is None or not statuses or not sources:
        return None
    prefix = to_bytes(query.starts_with)
    us, behind = start or ((US_MAX, b"") if query.newest_first else (-1, b""))
    values: dict[str, Any] = {
        "statuses": ["ready"] if _is_due(query) else statuses,
        "waiting": [one for one in WAITING if one in statuses],
        "workflows": None if workflows is None else [to_bytes(one) for one in dict.fromkeys(workflows)],
        "parent": None if query.parent is None else to_bytes(query.parent),
        "from_id": prefix,
        "below_id": after_all(prefix) if prefix else None,
        "us": us,
        "id": behind,
    }
    for n, (name, value) in enumerate(tags.items()):
        values[f"name{n}"], values[f"value{n}"] = name, value
    return Asked(sources, _filters(query, workflows), values, len(tags))


def _is_due(query: Query) -> bool:
    """Whether it is asked by the sources of what is due; runs that ask are few, and are looked at one by one."""
    return query.due and query.order != "asking"


def _sources(query: Query, statuses: Sequence[str], workflows: Sequence[str] | None) -> list[str]:
    by_status = "by_status" if workflows is None else "by_workflow"
    if query.order == "asking":
        return ["asking"]
    if query.due:
        ready = [by_status] if "ready" in statuses else []
        waiting = ["waiting"] if set(WAITING).intersection(statuses) else []
        return [*ready, *waiting, *(["left"] if "running" in statuses else [])]
    if query.tags:
        return ["by_tag"]
    if query.parent is not None:
        return ["by_parent"]
    if workflows is None and not query.status and query.order == "created":
        return ["all"]
    return [by_status]


def _filters(query: Query, workflows: Sequence[str] | None) -> list[str]:
    wanted = {
        "workflow": workflows is not None,
        "status": bool(query.status) and not _is_due(query),
        "parent": query.parent is not None,
        "id": bool(query.starts_with),
        "below": bool(query.starts_with),
        "due": query.due and query.order == "asking",
    }
    return [name for name, is_wanted in wanted.items() if is_wanted]
