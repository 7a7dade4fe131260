"""An answer checked against a stored schema, by a process that has none of the user's types.

The schema is what `field_types` makes: JSON Schema (draft 2020-12) without references, of these kinds.

| schema                                        | answers it takes                     | stored as           |
|-----------------------------------------------|--------------------------------------|---------------------|
| {}                                            | anything                             | as given            |
| "anyOf": [schema, {"type": "null"}]           | None, or what the schema takes       | the same            |
| "enum": [...], "x-names": {name: value}       | a value, a name, an Enum's member    | the value           |
| "type": "boolean", "integer", "number"        | bool, int, int or float              | bool, int, float    |
| "type": "string"                              | text                                 | text                |
| "type": "string", "format": "date"            | ISO text, a date                     | ISO text            |
| "type": "string", "format": "date-time"       | ISO text, a datetime                 | ISO text            |
| "type": "array", "items": schema              | a list or tuple                      | a list              |
| "type": "object", "properties", "required"    | a mapping, an instance of a class    | a dict, in order    |

A field that is left out stays left out: its default belongs to the type that was asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import Any, cast

from keepstep.codec.kinds import kind_of
from keepstep.engine.fields.wording import wanted
from keepstep.errors import InvalidAnswer, shown

Schema = Mapping[str, Any]


def validate(schema: Schema, answer: Any) -> Any:
    """The answer in its stored form; InvalidAnswer says what is wrong with each field."""
    if not schema:
        return answer
    checking = _Checking()
    plain = checking.any(schema, answer, "")
    if checking.problems:
        raise InvalidAnswer(checking.problems)
    return plain


def fits(schema: Schema, answer: Any) -> bool:
    """Whether the schema takes the answer."""
    try:
        validate(schema, answer)
    except InvalidAnswer:
        return False
    return True


def opened(schema: Schema) -> tuple[Schema, bool]:
    """The schema of the value itself, and whether None may stand in its place."""
    choices = schema.get("anyOf")
    return (schema, False) if choices is None else (choices[0], True)


_ASKING = frozenset(("type", "enum"))
"""Without one of these, a schema takes any answer."""


class _Misfit(Exception):  # one value is not what the schema asks for
    pass


class _Checking:
    """One pass over an answer, which finds every problem."""

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}

    def any(self, schema: Schema, answer: Any, at: str) -> Any:
        inner, nullable = opened(schema)
        if (nullable and answer is None) or not inner.keys() & _ASKING:
            return answer
        try:
            if inner.get("type") == "object":
                return self.object(inner, answer, at)
            if inner.get("type") == "array":
                return self.array(inner, answer, at)
            return _leaf(inner, answer)
        except _Misfit:
            self.problems[at] = f"is {shown(answer)}; give {wanted(schema)}"
            return None

    def array(self, schema: Schema, answer: Any, at: str) -> list[Any]:
        if not isinstance(answer, (list, tuple)):
            raise _Misfit
        elements = cast("list[Any]", answer)
        if not schema.get("minItems", 0) <= len(elements) <= schema.get("maxItems", math.inf):
            raise _Misfit
        return [self.any(schema["items"], one, f"{at}[{index}]") for index, one in enumerate(elements)]

    def object(self, schema: Schema, answer: Any, at: str) -> dict[str, Any]:
        parts: Schema = schema["properties"]
        given = _fields_of(answer, parts)
        for name in given:
            if name not in parts:
                self.problems[_inside(at, name)] = f"is not one of the fields: {', '.join(parts)}"
        for name in schema["required"]:
            if name not in given:
                self.problems[_inside(at, name)] = f"is missing; give {wanted(parts[name])}"
        return {name: self.any(part, given[name], _inside(at, name)) for name, part in parts.items() if name in given}


def _inside(at: str, name: Any) -> str:
    named = name if isinstance(name, str) else shown(name)
    return f"{at}.{named}" if at else named


def _fields_of(answer: Any, parts: Schema) -> Mapping[Any, Any]:
    if isinstance(answer, Mapping):
        return cast("Mapping[Any, Any]", answer)
    kind = kind_of(cast("type[Any]", type(answer)))
    if kind is None:
        raise _Misfit
    return {name: value for name, value in kind.take(answer).items() if name in parts}


def _leaf(schema: Schema, answer: Any) -> Any:
    value = answer.value if isinstance(answer, Enum) else answer
    if "enum" in schema:
        return _choice(schema, value)
    return _LEAVES[schema.get("format", schema["type"])](schema, value)


def _choice(schema: Schema, value: Any) -> Any:
    if not isinstance(value, (str, int, float)):
        raise _Misfit
    for option in schema["enum"]:
        if isinstance(option, bool) == isinstance(value, bool) and option == value:
            return option
    names: Schema = schema.get("x-names", {})
    if not isinstance(value, str) or value not in names:
        raise _Misfit
    return names[value]


def _boolean(schema: Schema, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Misfit
    return value


def _integer(schema: Schema, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Misfit
    return _within(schema, int(value))


def _number(schema: Schema, value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _Misfit
    try:
        number = float(value)
    except OverflowError:
        raise _Misfit from None
    if not math.isfinite(number):  # JSON has no other, and no range holds them
        raise _Misfit
    return _within(schema, number)


def _within(schema: Schema, number: Any) -> Any:
    step = schema.get("multipleOf")
    if (
        number < schema.get("minimum", -math.inf)
        or number > schema.get("maximum", math.inf)
        or number <= schema.get("exclusiveMinimum", -math.inf)
        or number >= schema.get("exclusiveMaximum", math.inf)
        or (step is not None and (_exact(number) / _exact(step)).denominator != 1)
    ):
        raise _Misfit
    return number


def _exact(number: float) -> Fraction:
    # a float as it is written: 0.3 is a multiple of 0.1, though its nearest binary fraction is not
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def _text(schema: Schema, value: Any) -> str:
    if not isinstance(value, str) or not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf):
        raise _Misfit
    if "pattern" in schema and re.search(schema["pattern"], value) is None:
        raise _Misfit
    return str(value)


def _date(schema: Schema, value: Any) -> str:
    if isinstance(value, datetime):
        raise _Misfit
    if isinstance(value, date):
        return value.isoformat()
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise _Misfit from None


def _moment(schema: Schema, value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _Misfit from None
    try:
        date.fromisoformat(value)
    except ValueError:
        return moment.isoformat()
    raise _Misfit  # a day alone would be taken for its midnight


_LEAVES: Mapping[str, Callable[[Schema, Any], Any]] = {
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "string": _text,
    "date": _date,
    "date-time": _moment,
}
