"""The kinds of classes that can be registered: how each is taken apart and made again.

| kind      | stored fields                             | made again                                             |
|-----------|-------------------------------------------|--------------------------------------------------------|
| dataclass | every field that is set                   | without `__init__` and `__post_init__`: fields are set |
| attrs     | every field that is set                   | the same                                               |
| pydantic  | fields; extra, private and set under ""   | the same: no validation, as in `model_copy`            |
| Struct    | every field; UNSET only if it is default  | through the constructor (a Struct has no other way)    |

So what was stored is what is read: no default is computed again, no validator changes a value. A field the
stored value lacks takes its default; a stored field the class no longer has is left out. A field that lacks both
is a StateMismatch.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Protocol, cast

import msgspec

REST = ""  # the key for what is not a field; no attribute can be named so


class Misfit(Exception):
    """The stored fields do not fit the class; the text says why."""


class Kind(Protocol):
    """How instances of one registered class are taken apart and made again."""

    def take(self, value: Any) -> dict[str, Any]: ...

    def make(self, fields: dict[str, Any]) -> Any: ...


class _Fields:
    """Dataclasses and attrs classes: fields are read and set one by one, no constructor runs."""

    def __init__(self, cls: type[Any], fields: Mapping[str, Callable[[Any], Any] | None]) -> None:
        self.cls = cls
        self.fields = fields  # name -> what gives the default, or None

    def take(self, value: Any) -> dict[str, Any]:
        try:
            return {name: getattr(value, name) for name in self.fields}
        except AttributeError:  # a field declared init=False may never have been set
            return {name: getattr(value, name) for name in self.fields if hasattr(value, name)}

    def make(self, fields: dict[str, Any]) -> Any:
        made = object.__new__(self.cls)
        put = object.__setattr__  # a frozen class has no other
        for name, default in self.fields.items():
            if name in fields:
                put(made, name, fields[name])
            elif default is not None:
                put(made, name, default(made))
        return made


def _absent(name: str) -> Callable[[Any], Any]:
    def refuse(made: Any) -> Any:
        raise Misfit(f"the field {name!r} is neither stored nor has it a default")

    return refuse


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda made: value


def _dataclass(cls: type[Any]) -> Kind:
    fields: dict[str, Callable[[Any], Any] | None] = {}
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            fields[field.name] = _constant(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            fields[field.name] = _calling(field.default_factory)
        else:
            fields[field.name] = _absent(field.name) if field.init else None
    return _Fields(cls, fields)


def _calling(factory: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda made: factory()


def _attrs(cls: Any) -> Kind:
    nothing = sys.modules["attr"].NOTHING
    fields: dict[str, Callable[[Any], Any] | None] = {}
    for field in cls.__attrs_attrs__:
        default = field.default
        if default is nothing:
            fields[field.name] = _absent(field.name) if field.init else None
        elif isinstance(default, sys.modules["attr"].Factory):
            factory: Any = default.factory  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            takes_self: bool = default.takes_self  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            fields[field.name] = factory if takes_self else _calling(factory)
        else:
            fields[field.name] = _constant(default)
    return _Fields(cls, fields)


class _Struct:
    """msgspec Structs: made through the constructor, which fills in defaults and runs `__post_init__`."""

    def __init__(self, cls: type[msgspec.Struct]) -> None:
        self.cls = cls
        self.names = cls.__struct_fields__
        self.unset = {
            field.name for field in msgspec.structs.fields(cls) if field.default is msgspec.UNSET
        }  # UNSET has no stored form, but leaving it out reads as the default

    def take(self, value: Any) -> dict[str, Any]:
        fields = {name: getattr(value, name) for name in self.names}
        for name in self.unset:
            if fields[name] is msgspec.UNSET:
                del fields[name]
        return fields

    def make(self, fields: dict[str, Any]) -> Any:
        known = {name: fields[name] for name in self.names if name in fields}
        try:
            return self.cls(**known)
        except Exception as error:  # a missing field, or what __post_init__ objects to
            raise Misfit(f"{type(error).__name__}: {error}") from error


class _Model:
    """pydantic models: their four parts are read and set as `model_copy` does, no validator runs."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def take(self, value: Any) -> dict[str, Any]:
        fields: dict[str, Any] = dict(value.__dict__)
        rest: dict[str, Any] = {}
        was_set: set[str] = value.__pydantic_fields_set__
        names = self.cls.__pydantic_fields__
        if was_set != names.keys():
            rest["set"] = sorted(was_set)
        if value.__pydantic_extra__:
            rest["extra"] = value.__pydantic_extra__
        if value.__pydantic_private__:
            rest["private"] = value.__pydantic_private__
        if rest:
            fields[REST] = rest
        return fields

    def make(self, fields: dict[str, Any]) -> Any:
        cls = self.cls
        rest: dict[str, Any] = fields.get(REST) or {}
        values: dict[str, Any] = {}
        for name, field in cls.__pydantic_fields__.items():
            if name in fields:
                values[name] = fields[name]
            elif field.is_required():
                raise Misfit(f"the field {name!r} is neither stored nor has it a default")
            else:
                values[name] = field.get_default(call_default_factory=True, validated_data=values)
        made = cls.__new__(cls)
        put = object.__setattr__
        put(made, "__dict__", values)
        put(made, "__pydantic_fields_set__", set(rest.get("set", cls.__pydantic_fields__)))
        allowed = cls.model_config.get("extra") == "allow"
        put(made, "__pydantic_extra__", rest.get("extra") or {} if allowed else None)
        put(made, "__pydantic_private__", self._private(rest.get("private")))
        return made

    def _private(self, stored: dict[str, Any] | None) -> dict[str, Any] | None:
        declared: dict[str, Any] = self.cls.__private_attributes__
        if not declared:
            return None
        undefined = sys.modules["pydantic_core"].PydanticUndefined
        fresh = {name: attribute.get_default() for name, attribute in declared.items() if name not in (stored or {})}
        return {name: value for name, value in fresh.items() if value is not undefined} | (stored or {})


_BUILTIN = (dict, list, tuple, set, frozenset, str, bytes, bytearray, int, float, complex, BaseException)


def kind_of(cls: Any) -> Kind | None:
    """How instances of the class are taken apart, or None if it is of no kind that is known (Enums are not asked)."""
    if not isinstance(cls, type) or issubclass(cls, (*_BUILTIN, Enum)):
        return None  # fields would not be the whole of a dict or an exception
    if issubclass(cls, msgspec.Struct):
        return _Struct(cls)
    pydantic = sys.modules.get("pydantic")  # if nobody imported it, the class is none of its models
    if pydantic is not None and issubclass(cls, pydantic.BaseModel):
        return _Model(cls)
    if "__attrs_attrs__" in cls.__dict__:
        return _attrs(cls)
    if "__dataclass_fields__" in cls.__dict__:
        return _dataclass(cast(type[Any], cls))
    return None
