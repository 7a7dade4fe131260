"""Tags as SQLite compares them: 1 and 1.0 are equal there as here, True is not 1, and nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping

from keepstep.log.fold import Fold
from keepstep.log.records import TagValue
from keepstep.store.sqlite.driver import Cursor
from keepstep.store.sqlite.statements import sql

Column = str | int | float | bytes


def columns_of(tags: Mapping[str, TagValue]) -> dict[str, Column] | None:
    """The tags' columns; None when one of them equals nothing, as NaN does."""
    columns = {name: _column(value) for name, value in tags.items()}
    whole = {name: value for name, value in columns.items() if value is not None}
    return whole if len(whole) == len(columns) else None


def index_tags(cursor: Cursor, key: int, run_id: str, row: Fold) -> None:
    """Bring what lists are searched by in line with a run's row."""
    found = cursor.execute(sql("read_tags"), (key,)).fetchall()
    before = {name: (value, created_us, changed_us) for name, value, created_us, changed_us in found}
    for name, value in row.tags.items():
        column = _column(value)
        now = (column, row.created_us, row.changed_us)
        # Compared with its type: 1 == 1.0, and whoever reads the file should see which it is.
        if column is not None and (before.get(name) != now or type(before[name][0]) is not type(column)):
            cursor.execute(sql("put_tag"), (key, name, column, run_id, row.created_us, row.changed_us))
    for name in before:
        if _column(row.tags.get(name, float("nan"))) is None:
            cursor.execute(sql("erase_tag"), (key, name))


def _column(value: TagValue) -> Column | None:
    if isinstance(value, bool):
        return b"\x01" if value else b"\x00"
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return _large(value)
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN
        return None
    return value


def _large(value: int) -> Column:
    """An integer beyond SQLite's: as a float if that is exactly it, so that they compare as in Python."""
    try:
        return float(value) if float(value) == value else str(value).encode()
    except OverflowError:
        return str(value).encode()
