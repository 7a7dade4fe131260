"""Times as the log has them (microseconds since 1970) and as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@overload
def moment(at_us: int) -> datetime: ...
@overload
def moment(at_us: int | None) -> datetime | None: ...
def moment(at_us: int | None) -> datetime | None:
    """The time as a datetime in UTC; None for a time that is not set."""
    if not at_us:
        return None
    return _EPOCH + timedelta(microseconds=at_us)
