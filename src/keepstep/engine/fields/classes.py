"""The fields of a class that is asked for: a msgspec Struct, a dataclass or a pydantic model."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast

import msgspec

NO_DEFAULT = object()


class NotAskable(Exception):
    """The fields of the class cannot be known, or not be answered; the text says why."""


@dataclass(frozen=True, slots=True)
class ClassField:
    """One field as its class declares it."""

    name: str
    annotation: Any
    required: bool
    default: Any = NO_DEFAULT
    """Nothing that could be answered if there is none, or if a function makes it: that may differ each time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A class that is asked for: its fields, and how an instance is made of their values."""

    fields: list[ClassField]
    make: Callable[[dict[str, Any]], Any]


def asked_class(cls: Any) -> Asked | None:
    """What is asked for with a class; None if it is no Struct, dataclass or pydantic model."""
    if not isinstance(cls, type):
        return None
    if issubclass(cls, msgspec.Struct):
        return Asked(_struct(cls), lambda values: cls(**values))
    declared = cast("dict[str, Any]", cls.__dict__)
    if "__pydantic_fields__" in declared and not getattr(cast("Any", cls), "__pydantic_root_model__", False):
        return _pydantic(cls)
    if "__dataclass_fields__" in declared:
        return Asked(_dataclass(cast("type[Any]", cls)), lambda values: cls(**values))
    return None


def _struct(cls: type[msgspec.Struct]) -> list[ClassField]:
    hints = _hints(cls)
    return [
        ClassField(one.name, hints[one.name], one.required, _default(one.default, one.default_factory))
        for one in msgspec.structs.fields(cls)
    ]


def _dataclass(cls: type[Any]) -> list[ClassField]:
    hints = _hints(cls)
    if any(isinstance(hint, dataclasses.InitVar) for hint in hints.values()):
        raise NotAskable("it has an InitVar, which is no field")
    found: list[ClassField] = []
    for one in dataclasses.fields(cls):
        if one.init:
            default = _default(one.default, one.default_factory)
            required = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
            found.append(ClassField(one.name, hints[one.name], required, default))
    return found


def _pydantic(cls: Any) -> Asked:
    found: list[ClassField] = []
    for name, one in cls.__pydantic_fields__.items():
        default = NO_DEFAULT if one.is_required() else _default(one.default, one.default_factory)
        found.append(ClassField(name, Annotated[one.annotation, one], one.is_required(), default))
    if not hasattr(cls, "model_validate"):  # a dataclass of pydantic's
        return Asked(found, lambda values: cls(**values))
    return Asked(found, lambda values: cls.model_validate(values, by_name=True))


def _default(value: Any, factory: Any) -> Any:
    # the words for "none" of msgspec, dataclasses and pydantic stand as they are: no field takes them for an answer
    return [] if factory is list else value


def _hints(cls: type[Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        raise NotAskable(f"its annotations cannot be read: {error}") from error
