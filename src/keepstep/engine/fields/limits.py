"""What an annotation says about a field besides its type: limits, a title, a description.

msgspec's Meta, annotated_types and pydantic's Field say it in attributes of the same names; any other remark in an
Annotated is for somebody else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from keepstep.errors import BadInput, shown

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_TEXTS = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}
_LISTS = {"min_length": "minItems", "max_length": "maxItems"}
_EVERY = ("tz", *_NUMBERS, *_TEXTS)


def limited(schema: Mapping[str, Any], remarks: list[Any], at: str) -> dict[str, Any]:
    """The schema with the limits of the remarks; BadInput if one does not fit the type."""
    keywords = _keywords(schema)
    narrowed = dict(schema)
    for remark in _flat(remarks):
        for name in _EVERY:
            limit = getattr(remark, name, None)
            if limit is None:
                continue
            if name not in keywords or not _fits(name, limit):
                raise BadInput(
                    f"fields= limits {at or 'the answer'} with {name}={shown(limit)}, which it cannot have. Numbers "
                    "take ge, gt, le, lt and multiple_of; text takes min_length, max_length and pattern, as text; "
                    "lists take min_length and max_length."
                )
            narrowed[keywords[name]] = limit
    return narrowed


def said(remarks: list[Any]) -> dict[str, str]:
    """The title and description among the remarks."""
    words: dict[str, str] = {}
    for remark in _flat(remarks):
        for name in ("title", "description"):
            word = getattr(remark, name, None)
            if isinstance(word, str):  # `title` of a plain text is a method
                words[name] = word
    return words


def _flat(remarks: list[Any]) -> Iterator[Any]:
    for remark in remarks:
        yield remark
        yield from getattr(remark, "metadata", ())  # pydantic's Field keeps its limits there


def _keywords(schema: Mapping[str, Any]) -> dict[str, str]:
    kind = schema.get("type")
    if kind in {"integer", "number"}:
        return _NUMBERS
    if kind == "array":
        return _LISTS
    return _TEXTS if kind == "string" and "format" not in schema else {}


def _fits(name: str, limit: Any) -> bool:
    if name == "pattern":
        return _is_pattern(limit)
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not math.isfinite(limit):
        return False
    if name == "multiple_of":
        return limit > 0
    return name in _NUMBERS or (isinstance(limit, int) and limit >= 0)


def _is_pattern(limit: Any) -> bool:
    if not isinstance(limit, str):
        return False
    try:
        re.compile(limit)
    except re.error:
        return False
    return True
