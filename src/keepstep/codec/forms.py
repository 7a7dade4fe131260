"""How the plain types that MessagePack lacks are written: one extension code each.

Every form here is a leaf: its payload holds no other value of the user's. Tuples, sets, odd dicts, instances
and enums hold values and are written by `values`; their codes are listed here all the same, so that one place
shows them all. A code is never given a new meaning.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any, cast
from uuid import UUID

import ormsgpack

TUPLE = 1  # array of the elements
SET = 2  # array of the elements, in the order of their encoded bytes
FROZENSET = 3  # the same
DICT = 4  # array key, value, key, value ...: a dict with a key that is not plain text
INT = 5  # big-endian two's complement: beyond 64 bits
STR = 6  # UTF-8 with surrogates passed: text with lone surrogates
BYTEARRAY = 7  # the bytes
DATETIME = 8  # array: ISO text, fold, zone
DATE = 9  # ISO text
TIME = 10  # array: ISO text, fold, zone
TIMEDELTA = 11  # array: days, seconds, microseconds
DECIMAL = 12  # text
UUID_ = 13  # 16 bytes
PATH = 14  # one letter for the class, then the text
INSTANCE = 16  # array: tag, map of the fields
MEMBER = 17  # array: tag, the member's name (a Flag: its number)

INT_MIN, INT_MAX = -(1 << 63), (1 << 64) - 1  # what MessagePack holds itself


class NoForm(TypeError):
    """A value of a known type has no stored form; the text says why."""


def _int(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _zone(zone: tzinfo | None) -> Any:
    """Nil, the key of a ZoneInfo, or [microseconds] or [microseconds, name] of a fixed offset."""
    if zone is None:
        return None
    if type(zone) is timezone:
        offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]
        return [offset // timedelta(microseconds=1), *name]
    zoneinfo: Any = sys.modules.get("zoneinfo")  # if nobody imported it, the zone is none of its
    key: Any = getattr(zone, "key", None)
    if zoneinfo is not None and type(zone) is zoneinfo.ZoneInfo and key is not None:
        return key
    raise NoForm(
        f"has a zone of the type {type(zone).__name__}, which would not read back; "
        "use datetime.timezone or a ZoneInfo made from a key"
    )


def _read_zone(zone: Any) -> tzinfo | None:
    if zone is None:
        return None
    if isinstance(zone, str):
        from zoneinfo import ZoneInfo

        return ZoneInfo(zone)
    return timezone(timedelta(microseconds=zone[0]), *zone[1:])


def _moment(value: datetime | time) -> bytes:
    return ormsgpack.packb([value.replace(tzinfo=None).isoformat(), value.fold, _zone(value.tzinfo)])


def _read_datetime(payload: bytes) -> datetime:
    text, fold, zone = ormsgpack.unpackb(payload)
    return datetime.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


def _read_time(payload: bytes) -> time:
    text, fold, zone = ormsgpack.unpackb(payload)
    return time.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


_LETTERS: dict[type[PurePath], bytes] = {
    PurePosixPath: b"P", PureWindowsPath: b"W", PosixPath: b"p", WindowsPath: b"w",
}  # fmt: skip
_PATHS = {letter: cls for cls, letter in _LETTERS.items()}


def _read_path(payload: bytes) -> PurePath:
    cls = _PATHS[payload[:1]]
    text = payload[1:].decode("utf-8", "surrogatepass")
    try:
        return cls(text)
    except NotImplementedError:  # a PosixPath read on Windows, or the other way round
        return (PurePosixPath if cls is PosixPath else PureWindowsPath)(text)


def _path(value: PurePath) -> bytes:
    return _LETTERS[type(value)] + str(value).encode("utf-8", "surrogatepass")


def _timedelta(value: timedelta) -> bytes:
    return ormsgpack.packb([value.days, value.seconds, value.microseconds])


_WRITE: dict[type[Any], tuple[int, Callable[[Any], bytes]]] = {
    int: (INT, _int),
    datetime: (DATETIME, _moment),
    date: (DATE, lambda value: value.isoformat().encode()),
    time: (TIME, _moment),
    timedelta: (TIMEDELTA, _timedelta),
    Decimal: (DECIMAL, lambda value: str(value).encode()),
    UUID: (UUID_, lambda value: value.bytes),
    **dict.fromkeys(_LETTERS, (PATH, _path)),
}

_READ: dict[int, Callable[[bytes], Any]] = {
    INT: lambda payload: int.from_bytes(payload, "big", signed=True),
    STR: lambda payload: payload.decode("utf-8", "surrogatepass"),
    BYTEARRAY: bytearray,
    DATETIME: _read_datetime,
    DATE: lambda payload: date.fromisoformat(payload.decode()),
    TIME: _read_time,
    TIMEDELTA: lambda payload: timedelta(*ormsgpack.unpackb(payload)),
    DECIMAL: lambda payload: Decimal(payload.decode()),
    UUID_: lambda payload: UUID(bytes=payload),
    PATH: _read_path,
}


def form_of(value: Any) -> ormsgpack.Ext | None:
    """The extension that holds a leaf value, or None if its type is not one of ours."""
    entry = _WRITE.get(cast(type[Any], type(value)))
    return None if entry is None else ormsgpack.Ext(entry[0], entry[1](value))


def reader_of(code: int) -> Callable[[bytes], Any] | None:
    """What reads the payload of a leaf form, or None if the code is not a leaf's."""
    return _READ.get(code)
