"""Which classes may be stored and read, and under which name: reading knows no others."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from enum import Enum, Flag
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from keepstep.codec.kinds import Kind, kind_of
from keepstep.errors import BadInput, shown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unknown:
    """What a stored instance reads as when nobody registered its tag; stored again, it is written as it was.

    `value` is the dict of fields of an instance, or the name (of a Flag: the number) of an Enum's member.
    """

    tag: str
    value: Any

    def __hash__(self) -> int:
        return hash(self.tag)  # the value may be a dict; an Unknown must still fit in the set it came from


class Registry:
    """The classes that may be stored and read, each under a name that is written with the value."""

    def __init__(self, parent: Registry | None = None) -> None:
        self._parent = parent
        self._classes: dict[str, type[Any]] = {}
        self._tags: dict[type[Any], str] = {}
        self._kinds: dict[type[Any], Kind] = {}

    def register(self, cls: type[T], name: str | None = None) -> type[T]:
        """Let instances of the class be stored under the name (its qualified name, unless told otherwise).

        A class may have several names: the last one given is written, all of them are read.
        """
        if name is None and isinstance(cls, type) and self.tag_of(cls) is not None:  # pyright: ignore[reportUnnecessaryIsInstance]
            return cls
        if not _fits(cls):
            raise BadInput(
                f"{shown(cls)} cannot be registered: it is no dataclass, msgspec Struct, attrs class, pydantic model "
                "or Enum of its own (a subclass of dict, str or an exception holds more than its fields)."
            )
        tag = f"{cls.__module__}.{cls.__qualname__}" if name is None else name
        if not _writable(tag):
            raise BadInput(
                f"{shown(cls)} cannot be registered as {shown(name)}: the name must be text that is not empty."
            )
        other = self.class_of(tag)
        if other is not None and other is not cls:
            raise BadInput(
                f"{shown(cls)} cannot be registered as {shown(tag)}: {other!r} has that name. "
                "Give one another with name=."
            )
        kind = None if issubclass(cls, Enum) else kind_of(cls)
        if kind is not None:
            self._kinds[cls] = kind
        self._classes[tag] = cls
        self._tags[cls] = tag
        return cls

    def register_tree(self, cls: type[T]) -> type[T]:
        """Register the class and every class that its fields' annotations lead to."""
        self.register(cls)
        waiting: list[Any] = [cls]
        seen: set[type[Any]] = {cls}
        while waiting:
            for found in _named_in(_annotations(waiting.pop())):
                if found not in seen and _fits(found):
                    seen.add(found)
                    self.register(found)
                    waiting.append(found)
        return cls

    def child(self) -> Registry:
        """A registry that knows all that this one knows, now and later, and may know more."""
        return Registry(self)

    def class_of(self, tag: str) -> type[Any] | None:
        """The class registered under the name."""
        found = self._classes.get(tag)
        return found if found is not None or self._parent is None else self._parent.class_of(tag)

    def tag_of(self, cls: type[Any]) -> str | None:
        """The name the class is written under."""
        found = self._tags.get(cls)
        return found if found is not None or self._parent is None else self._parent.tag_of(cls)

    def kind_of(self, cls: type[Any]) -> Kind | None:
        """How instances of a registered class are taken apart; None for an Enum."""
        found = self._kinds.get(cls)
        return found if found is not None or self._parent is None else self._parent.kind_of(cls)


def member_form(member: Enum) -> str | int:
    """What stands for a member of an Enum: its name, or the number of a Flag, whose unions have no name."""
    return member.value if isinstance(member, Flag) else member.name


def _fits(cls: Any) -> bool:
    return isinstance(cls, type) and (_is_enum(cls) or kind_of(cls) is not None)


def _is_enum(cls: type[Any]) -> bool:
    return issubclass(cls, Enum) and hasattr(cls, "__members__") and (bool(cls.__members__) or issubclass(cls, Flag))


def _writable(tag: Any) -> bool:
    try:
        return isinstance(tag, str) and bool(tag.encode())
    except UnicodeEncodeError:
        return False


def _annotations(cls: Any) -> list[Any]:
    if issubclass(cls, Enum):
        return []
    try:
        hints = typing.get_type_hints(cls)
    except Exception as error:
        raise BadInput(
            f"The annotations of {shown(cls)} cannot be read ({error}). Register the classes it holds one by one."
        ) from error
    arguments = getattr(cls, "__pydantic_generic_metadata__", {}).get("args", ())
    fields = [field.annotation for field in getattr(cls, "__pydantic_fields__", {}).values()]
    return [*hints.values(), *arguments, *fields]


def _named_in(annotations: list[Any]) -> list[type[Any]]:
    """Every class named anywhere in the annotations, however nested."""
    found: list[type[Any]] = []
    waiting = list(annotations)
    aliases: set[int] = set()
    while waiting:
        one = waiting.pop()
        if get_origin(one) is Literal:
            found.extend(cast(type[Any], type(choice)) for choice in get_args(one))
        elif get_args(one):
            inner: tuple[Any, ...] = get_args(one)
            waiting.extend(inner[:1] if get_origin(one) is Annotated else inner)
            waiting.append(get_origin(one))
        elif isinstance(one, (list, tuple)):  # the arguments of a Callable
            waiting.extend(cast(list[Any], one))
        elif isinstance(one, type):
            found.append(one)
        elif isinstance(one, TypeVar):
            waiting.append(one.__bound__)
        elif hasattr(one, "__value__") and id(one) not in aliases:  # `type X = ...`, which may name itself
            aliases.add(id(one))
            waiting.append(one.__value__)
    return found


DEFAULT = Registry()
"""The registry of the whole process."""
