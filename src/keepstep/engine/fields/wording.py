"""What a schema asks for, in words: the end of every message about an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keepstep.errors import shown

_WORDS = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "date": "a date such as 2026-12-31",
    "date-time": "a date and time such as 2026-12-31T18:30:00+00:00",
}


def wanted(schema: Mapping[str, Any]) -> str:
    """What an answer may be, to be read after "give"."""
    if "anyOf" in schema:
        return f"{wanted(schema['anyOf'][0])}, or nothing"
    if "enum" in schema:
        options = [shown(one) for one in schema["enum"]]
        return options[0] if len(options) == 1 else f"one of {', '.join(options)}"
    kind: str = schema["type"]
    if kind == "object":
        return f"an object with the fields {', '.join(schema['properties'])}"
    if kind == "array":
        return f"a list, written [..., ...]{_count(schema, 'Items', 'element')}"
    pattern = f" that matches {schema['pattern']}" if "pattern" in schema else ""
    word = _WORDS[schema.get("format", kind)]
    return f"{word}{_range(schema)}{_count(schema, 'Length', 'character')}{pattern}"


def _range(schema: Mapping[str, Any]) -> str:
    bounds = (
        ("minimum", "at least"),
        ("exclusiveMinimum", "above"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "below"),
        ("multipleOf", "in steps of"),
    )
    told = [f"{words} {schema[key]}" for key, words in bounds if key in schema]
    return f", {' and '.join(told)}" if told else ""


def _count(schema: Mapping[str, Any], what: str, noun: str) -> str:
    bounds = ((f"min{what}", "at least"), (f"max{what}", "at most"))
    told = [f"{words} {_counted(schema[key], noun)}" for key, words in bounds if key in schema]
    return f" of {' and '.join(told)}" if told else ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
