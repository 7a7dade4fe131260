"""The types a field may have: each gives a schema to store, and makes the typed value of an answer that fits it.

What is asked for is drawn, checked and stored by the schema alone (see `field_answers`). Only the code that asks
has the types; it makes of a stored answer what its annotations say.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum, Flag
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from keepstep.engine.fields.answers import opened, validate
from keepstep.engine.fields.classes import NO_DEFAULT, ClassField, NotAskable, asked_class
from keepstep.engine.fields.limits import limited, said
from keepstep.errors import BadInput, InvalidAnswer, shown

SUPPORTED = (
    "bool, int, float, str, Literal of them, an Enum of them, datetime.date, datetime.datetime, list[...] and "
    "... | None of these, and a msgspec Struct, dataclass or pydantic model with such fields"
)

Make = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type that can be asked for."""

    schema: dict[str, Any]
    make: Make
    """Makes the typed value; the answer is in its stored form and fits the schema."""


def field_type(annotation: Any, at: str, inside: tuple[Any, ...] = ()) -> FieldType:
    """What an annotation asks for; BadInput names the field when it cannot be asked for.

    `inside` are the types this one stands in.
    """
    if any(annotation is one for one in inside):
        raise _refused(annotation, at, "it holds itself")
    if get_origin(annotation) is Annotated:
        bare, *remarks = get_args(annotation)
        return _remarked(field_type(bare, at, inside), remarks, at)
    if hasattr(annotation, "__value__") and not isinstance(annotation, type):  # `type Amount = ...`
        return field_type(annotation.__value__, at, (*inside, annotation))
    if get_origin(annotation) in {Union, types.UnionType}:
        return _union(annotation, at, inside)
    if get_origin(annotation) is Literal:
        return _literal(annotation, at)
    if get_origin(annotation) is list and get_args(annotation):
        return _list(field_type(get_args(annotation)[0], f"{at}[]", inside))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _enum(annotation, at)
    plain = _PLAIN.get(annotation) if isinstance(annotation, type) else None
    return _class(annotation, at, inside) if plain is None else FieldType(dict(plain.schema), plain.make)


def members(fields: list[ClassField], at: str, inside: tuple[Any, ...]) -> tuple[dict[str, Any], Make]:
    """The schema of an object with these fields, and what makes the typed values of those that are given."""
    found = {one.name: field_type(one.annotation, f"{at}.{one.name}" if at else one.name, inside) for one in fields}
    properties: dict[str, Any] = {}
    required: list[str] = []
    blank: set[str] = set()  # without a default of their own, so that None is it
    for one in fields:
        schema = found[one.name].schema
        properties[one.name] = {"title": _readable(one.name)} | schema | _default(one, schema)
        if one.required:
            blank.add(one.name) if opened(schema)[1] else required.append(one.name)

    def make(answer: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: kind.make(answer[name]) if name in answer else None
            for name, kind in found.items()
            if name in answer or name in blank
        }

    kind = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return kind, make


def _readable(name: str) -> str:
    words = name.replace("_", " ").strip() or name
    return words[:1].upper() + words[1:]


def _default(one: ClassField, schema: dict[str, Any]) -> dict[str, Any]:
    default = None if one.required and opened(schema)[1] else one.default
    try:
        return {} if default is NO_DEFAULT else {"default": validate(schema, default)}
    except InvalidAnswer:
        return {}  # `note: str = None` may be left out, but not answered with None


def _same(answer: Any) -> Any:
    return answer


_PLAIN: Mapping[type[Any], FieldType] = {
    bool: FieldType({"type": "boolean"}, _same),
    int: FieldType({"type": "integer"}, _same),
    float: FieldType({"type": "number"}, _same),
    str: FieldType({"type": "string"}, _same),
    date: FieldType({"type": "string", "format": "date"}, date.fromisoformat),
    datetime: FieldType({"type": "string", "format": "date-time"}, datetime.fromisoformat),
}


def _remarked(kind: FieldType, remarks: list[Any], at: str) -> FieldType:
    inner, nullable = opened(kind.schema)
    narrowed = limited(inner, remarks, at)
    schema = kind.schema | {"anyOf": [narrowed, {"type": "null"}]} if nullable else narrowed
    words = said(remarks)
    return FieldType(words | schema | words, kind.make)  # drawn first, and over those of the type itself


def _union(annotation: Any, at: str, inside: tuple[Any, ...]) -> FieldType:
    choices = [one for one in get_args(annotation) if one is not types.NoneType]
    if len(choices) != 1:
        raise _refused(annotation, at, "a field has one type")
    return _optional(field_type(choices[0], at, inside))


def _optional(kind: FieldType) -> FieldType:
    if opened(kind.schema)[1]:
        return kind
    inner = dict(kind.schema)
    words = {key: inner.pop(key) for key in ("title", "description") if key in inner}
    schema = words | {"anyOf": [inner, {"type": "null"}]}
    return FieldType(schema, lambda answer: None if answer is None else kind.make(answer))


def _list(element: FieldType) -> FieldType:
    return FieldType({"type": "array", "items": element.schema}, lambda answer: [element.make(one) for one in answer])


def _literal(annotation: Any, at: str) -> FieldType:
    options = [one for one in get_args(annotation) if one is not None]
    if not options:
        raise _refused(annotation, at, "it leaves no choice")
    kind = _choice(annotation, options, at)
    return kind if len(options) == len(get_args(annotation)) else _optional(kind)


def _enum(annotation: type[Enum], at: str) -> FieldType:
    if issubclass(annotation, Flag):
        raise _refused(annotation, at, "flags can be combined; ask for a list of an Enum")
    if not annotation.__members__:
        raise _refused(annotation, at, "it has no members")
    return _choice(annotation, list(annotation), at, annotation.__members__)


def _choice(annotation: Any, options: list[Any], at: str, named: Mapping[str, Enum] | None = None) -> FieldType:
    plain = [one.value if isinstance(one, Enum) else one for one in options]
    if not all(_is_plain(one) for one in plain):
        raise _refused(annotation, at, "its values must be text, numbers or booleans")
    names = named or {one.name: one for one in options if isinstance(one, Enum)}
    schema: dict[str, Any] = {"enum": plain}
    if names:
        schema["x-names"] = {name: member.value for name, member in names.items()}
    typed: dict[Any, Any] = {
        (cast(Any, type(value)), value): option for value, option in zip(plain, options, strict=True)
    }
    return FieldType(schema, lambda answer: typed[type(answer), answer])


def _is_plain(value: Any) -> bool:
    return type(value) in {str, int, bool} or (type(value) is float and math.isfinite(value))


def _class(annotation: Any, at: str, inside: tuple[Any, ...]) -> FieldType:
    try:
        asked = asked_class(annotation)
    except NotAskable as error:
        raise _refused(annotation, at, str(error)) from error
    if asked is None:
        raise _refused(annotation, at)
    if not asked.fields:
        raise _refused(annotation, at, "it has no fields")
    schema, values_of = members(asked.fields, at, (*inside, annotation))

    def make(answer: Any) -> Any:
        values = values_of(answer)
        try:
            return asked.make(values)
        except Exception as error:
            raise BadInput(
                f"The answer is not accepted by {annotation.__name__}: {type(error).__name__}: {error}"
            ) from error

    return FieldType(schema, make)


def _refused(annotation: Any, at: str, why: str = "") -> BadInput:
    where = f" has {at!r}:" if at else " is"
    because = f" ({why})" if why else ""
    return BadInput(f"fields={where} {shown(annotation)}, which cannot be asked for{because}. Give {SUPPORTED}.")
