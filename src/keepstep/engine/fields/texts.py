"""Answers that come as text, from a prompt or a plain HTML form, read by the schema of the field.

Text that cannot be read stays text, so that `validate` alone says what is wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from keepstep.engine.fields.answers import Schema, fits, opened, validate

_YES = frozenset({"yes", "y", "true", "on", "1"})
_NO = frozenset({"no", "n", "false", "off", "0"})

_LEFT_OUT = object()


def read_text(schema: Schema, texts: Mapping[str, str] | str) -> Any:
    """The stored form of an answer given as one text for each field, or as one text (or under "") for all of it.

    Blank text is None where the field takes None; otherwise it leaves the field out, or is text if that must be given.
    """
    if not schema:
        return texts if isinstance(texts, str) else dict(texts)
    if isinstance(texts, str):
        return validate(schema, _whole(schema, texts))
    inner, _ = opened(schema)
    if inner.get("type") == "object":
        return validate(schema, _fields(inner, texts))
    return validate(schema, _whole(schema, texts.get("", "")) if set(texts) <= {""} else dict(texts))


def _whole(schema: Schema, text: str) -> Any:
    value = _read(schema, text, required=True)
    return text if value is _LEFT_OUT else value


def _fields(schema: Schema, texts: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, text in texts.items():
        part = schema["properties"].get(name)
        value = text if part is None else _read(part, text, required=name in schema["required"])
        if value is not _LEFT_OUT:
            fields[name] = value
    return fields


def _read(schema: Schema, text: str, *, required: bool) -> Any:
    inner, nullable = opened(schema)
    if not text.strip():
        if nullable:
            return None
        return text if required and _takes_any_text(inner) else _LEFT_OUT
    if "enum" in inner:
        return _option(inner, text)
    return _READERS[inner["type"]](text if _takes_any_text(inner) else text.strip())


def _takes_any_text(schema: Schema) -> bool:
    return schema.get("type") == "string" and "format" not in schema


def _option(schema: Schema, text: str) -> Any:
    stripped = text.strip()
    for reading in (text, stripped, _number(stripped), _boolean(stripped)):
        if fits(schema, reading):
            return reading
    return text


def _boolean(text: str) -> Any:
    word = text.lower()
    return word in _YES if word in _YES | _NO else text


def _integer(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_READERS: Mapping[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "string": str,
    "array": _json,
    "object": _json,
}
