"""Times as the log has them (microseconds since 1970) and as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, overload

from keepstep.errors import BadInput, shown

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


def at_us(moment: Any) -> int:
    """A time that the user gave, as the log has it."""
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise BadInput(f"moment= is {shown(moment)}; give a datetime with its zone, such as datetime.now(UTC).")
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise BadInput(f"moment= is {shown(moment)}, which has no date in UTC; give a time that has one.") from None
    return (moment - _EPOCH) // timedelta(microseconds=1)  # exact, as a float is not
