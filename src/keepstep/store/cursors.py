"""Where a page of a list ended, as text for its reader to bring back."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from keepstep.errors import BadInput, shown
from keepstep.store.base import Query
from keepstep.store.listing import Cursor


def write_cursor(query: Query, us: int, run_id: str) -> str:
    """A cursor behind this place."""
    return urlsafe_b64encode(msgspec.json.encode(Cursor(query.order, query.newest_first, us, run_id))).decode()


def read_cursor(cursor: str, query: Query) -> tuple[int, str]:
    """The place that a cursor names; `BadInput` when it is not one of this list's."""
    try:
        place = msgspec.json.decode(urlsafe_b64decode(cursor.encode()), type=Cursor)
    except (ValueError, msgspec.MsgspecError):
        place = None
    if place is None or (place.order, place.newest_first) != (query.order, query.newest_first):
        raise BadInput(f"{shown(cursor)} is no cursor of this list. Begin at its start, with cursor=None.")
    return place.us, place.run_id
