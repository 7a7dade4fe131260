"""Tags as they are compared: equal bytes mean equal values. 1 and 1.0 are equal, as in Python; True is not 1."""

from __future__ import annotations

from collections.abc import Mapping

from keepstep.log.records import TagValue
from keepstep.store.postgres.texts import to_bytes


def columns_of(tags: Mapping[str, TagValue]) -> dict[bytes, bytes] | None:
    """The tags' columns; None when one of them equals nothing, as NaN does."""
    columns = indexed(tags)
    return columns if len(columns) == len(tags) else None


def indexed(tags: Mapping[str, TagValue]) -> dict[bytes, bytes]:
    """The columns of those that can be found."""
    columns = {to_bytes(name): _column(value) for name, value in tags.items()}
    return {name: value for name, value in columns.items() if value is not None}


def _column(value: TagValue) -> bytes | None:
    if isinstance(value, bool):
        return b"yes" if value else b"no"
    if isinstance(value, str):
        return b"'" + to_bytes(value)
    if isinstance(value, float):
        if value != value:  # noqa: PLR0124 - NaN
            return None
        if not value.is_integer():
            return repr(value).encode()
    return b"%d" % value if isinstance(value, int) else b"%d" % int(value)
