"""Lists of runs for stores that have no index: which rows a query wants, in what order, and a page of them."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from keepstep.errors import BadInput, shown
from keepstep.log.fold import Fold
from keepstep.log.records import TagValue
from keepstep.store.base import Order, Page, Query, Row

ABSENT = object()


class Cursor(NamedTuple):
    """Where a page ended. It names a place and no row, so the row may move or go meanwhile."""

    order: Order
    newest_first: bool
    us: int
    run_id: str


def page(rows: Iterable[Row], query: Query, cursor: str | None, limit: int, now_us: int) -> Page:
    """The rows that the query wants, from the cursor on."""
    wanted = [row for row in rows if wants(query, row, now_us)]
    wanted.sort(key=lambda row: place(row, query.order), reverse=query.newest_first)
    if cursor is not None:
        start = _read(cursor, query)
        wanted = [row for row in wanted if _is_past(place(row, query.order), start, query)]
    some = wanted[:limit]
    more = len(wanted) > limit
    return Page(some, _write(query, some[-1]) if more and some else None)


def place(row: Row, order: Order) -> tuple[int, str]:
    """Where a row stands in a list; no two stand at one place."""
    us = _us(row.fold, order)
    assert us is not None, "it was asked whether the list wants this run"
    return us, row.run_id


def wants(query: Query, row: Row, now_us: int) -> bool:
    """Whether a query asks for this run."""
    fold = row.fold
    return (
        _us(fold, query.order) is not None
        and query.workflow in (None, fold.workflow)
        and (not query.status or fold.status in query.status)
        and query.parent in (None, fold.parent_run)
        and row.run_id.startswith(query.starts_with)
        and all(_same(fold.tags.get(name, ABSENT), value) for name, value in query.tags.items())
        and (not query.due or is_due(row, now_us))
    )


def is_due(row: Row, now_us: int) -> bool:
    """Whether a worker may claim this run now."""
    if row.fold.status == "running":
        return row.holder is None or not row.holder.stands
    due_us = row.fold.due_us
    return row.fold.status == "ready" or (due_us is not None and due_us <= now_us)


def _us(fold: Fold, order: Order) -> int | None:
    """What a list is ordered by; None for a run that has no place in it."""
    match order:
        case "created":
            return fold.created_us
        case "changed":
            return fold.changed_us
        case "asking":
            return fold.asking_us


def _same(has: object, asked: TagValue) -> bool:
    """Equal, and not only because Python takes True for 1."""
    return has == asked and isinstance(has, bool) == isinstance(asked, bool)


def _is_past(here: tuple[int, str], start: Cursor, query: Query) -> bool:
    end = (start.us, start.run_id)
    return here < end if query.newest_first else here > end


def _write(query: Query, last: Row) -> str:
    cursor = Cursor(query.order, query.newest_first, *place(last, query.order))
    return urlsafe_b64encode(msgspec.json.encode(cursor)).decode()


def _read(cursor: str, query: Query) -> Cursor:
    try:
        start = msgspec.json.decode(urlsafe_b64decode(cursor.encode()), type=Cursor)
    except (ValueError, msgspec.MsgspecError):
        start = None
    if start is None or (start.order, start.newest_first) != (query.order, query.newest_first):
        raise BadInput(f"{shown(cursor)} is no cursor of this list. Begin at its start, with cursor=None.")
    return start
