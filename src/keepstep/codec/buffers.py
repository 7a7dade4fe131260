"""Finding bytearrays and memoryviews, which ormsgpack writes as bytes without asking.

A walk in Python would cost several times the encoding. So: no byte of the encoding looks like the header of a
binary value -> there is none; otherwise the garbage collector's own traversal lists the elements, in C.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

_HEADER_BYTES = 5  # the longest header of a binary value
_CONTAINERS = frozenset({list, dict, tuple, set, frozenset})
BUFFERS = frozenset({bytearray, memoryview})


def may_hold_binary(data: bytes) -> bool:
    """Whether a binary value could be in this MessagePack; False is certain."""
    return b"\xc4" in data or b"\xc5" in data or b"\xc6" in data  # bin 8, 16, 32


def may_bring_binary(data: bytes, splices: Sequence[Any]) -> bool:
    """Whether what the splices put in could be binary, when the encoding before them held none."""
    at = 0
    for index in range(0, len(splices), 3):
        at += splices[index]
        end = at + len(splices[index + 2])
        if may_hold_binary(data[max(0, at - _HEADER_BYTES) : end + _HEADER_BYTES]):
            return True
        at = end
    return False


def types_in(value: Any) -> set[type[Any]]:
    """The types of everything in the value's nested built-in containers; instances are not entered."""
    found: set[type[Any]] = {type(value)}
    level: list[Any] = [value] if type(value) in _CONTAINERS else []
    while level:
        level = gc.get_referents(*level)
        types: set[type[Any]] = set(map(type, level))
        found |= types
        if not types <= _CONTAINERS:
            level = [one for one in level if type(one) in _CONTAINERS] if types & _CONTAINERS else []
    return found
