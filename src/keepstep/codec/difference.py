"""What differs between two states, in words a person reads: path, kind, before, after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from math import isnan
from typing import Any, Literal, cast

import msgspec

from keepstep.codec.parts import Parts
from keepstep.codec.registry import Unknown

_DEPTH_MAX = 200  # deeper values are compared as one


@dataclass(frozen=True, slots=True)
class Change:
    """One difference."""

    path: str
    """Like `messages[3].text`; empty for the state itself."""
    kind: Literal["added", "removed", "changed"]
    old: Any = None
    new: Any = None


def difference(old: Any, new: Any) -> list[Change]:
    """Every place at which the two states differ, in the order of the new one."""
    return list(_between(old, new, "", 0))


def weigh(parts: Parts) -> dict[str, int]:
    """How many bytes each key takes, the largest first."""
    return dict(sorted(((key, len(data)) for key, data in parts.items.items()), key=lambda entry: -entry[1]))


def _between(old: Any, new: Any, path: str, depth: int) -> Iterator[Change]:
    if old is new:
        return
    if type(old) is type(new) and depth < _DEPTH_MAX:
        if isinstance(old, dict):
            yield from _dicts(cast("dict[Any, Any]", old), new, path, depth)
            return
        if isinstance(old, (list, tuple)):
            yield from _lists(list(cast("list[Any]", old)), list(new), path, depth)
            return
        both = _fields_of_both(old, new)
        if both is not None:
            yield from _dicts(*both, path, depth)
            return
    if not _same(old, new, depth):
        yield Change(path, "changed", old, new)


def _dicts(old: dict[Any, Any], new: dict[Any, Any], path: str, depth: int) -> Iterator[Change]:
    before, after = _typed(old), _typed(new)
    for key, (name, value) in before.items():
        if key not in after:
            yield Change(_at_key(path, name), "removed", old=value)
    for key, (name, value) in after.items():
        if key in before:
            yield from _between(before[key][1], value, _at_key(path, name), depth + 1)
        else:
            yield Change(_at_key(path, name), "added", new=value)


def _typed(value: dict[Any, Any]) -> dict[Any, tuple[Any, Any]]:
    """By type and key: True and 1 are two keys here."""
    return {(type(key), key): (key, one) for key, one in value.items()}


def _lists(old: list[Any], new: list[Any], path: str, depth: int) -> Iterator[Change]:
    """Equal ends are put aside; what is between is compared one by one, and the rest was added or removed."""
    least = min(len(old), len(new))
    head = 0
    while head < least and _same(old[head], new[head], depth + 1):
        head += 1
    tail = 0
    while tail < least - head and _same(old[-1 - tail], new[-1 - tail], depth + 1):
        tail += 1
    old_end, new_end = len(old) - tail, len(new) - tail
    both = min(old_end, new_end)
    for index in range(head, both):
        yield from _between(old[index], new[index], f"{path}[{index}]", depth + 1)
    for index in range(both, old_end):
        yield Change(f"{path}[{index}]", "removed", old=old[index])
    for index in range(both, new_end):
        yield Change(f"{path}[{index}]", "added", new=new[index])


def _same(old: Any, new: Any, depth: int) -> bool:
    """Equal and of one type all the way down; nan equals nan, True differs from 1."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, float):
        return old == new or (isnan(old) and isnan(new))
    if depth < _DEPTH_MAX:
        if isinstance(old, (list, tuple)):
            return _same_items(list(cast(list[Any], old)), list(new), depth)
        both = (cast(dict[Any, Any], old), new) if isinstance(old, dict) else _fields_of_both(old, new)
        if both is not None:
            before, after = _typed(both[0]), _typed(both[1])
            return before.keys() == after.keys() and _same_items(
                [one for _, one in before.values()], [after[key][1] for key in before], depth
            )
    try:
        return bool(old == new)
    except Exception:  # noqa: BLE001  # a user's own __eq__, on a value that may be half a value
        return False


def _same_items(old: list[Any], new: list[Any], depth: int) -> bool:
    return len(old) == len(new) and all(_same(one, new[index], depth + 1) for index, one in enumerate(old))


def _fields_of_both(old: Any, new: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The fields of two instances of one class; None if there are none to compare."""
    if isinstance(old, Unknown):
        both = (old.value, new.value)
        return both if old.tag == new.tag and all(type(one) is dict for one in both) else None
    before, after = _fields(old), _fields(new)
    return None if before is None or after is None else (before, after)


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of an instance, whatever kind of class it is of."""
    cls = cast(Any, type(value))
    if issubclass(cls, msgspec.Struct):
        names: list[str] = list(cls.__struct_fields__)
    elif is_dataclass(cls):
        names = [field.name for field in fields(cls)]
    elif hasattr(cls, "__attrs_attrs__"):
        names = [field.name for field in cls.__attrs_attrs__]
    elif hasattr(cls, "__pydantic_fields__"):
        model: Any = value
        return {**model.__dict__, **(model.__pydantic_extra__ or {})}
    else:
        return None
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _at_key(path: str, key: Any) -> str:
    if type(key) is str:
        if key.isidentifier():
            return f"{path}.{key}" if path else key
        return f'{path}["{key}"]'
    return f"{path}[{key!r}]"
