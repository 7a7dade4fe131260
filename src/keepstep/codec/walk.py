"""The slow way of a value: a walk in Python, taken only when the fast pass refused the value.

It finds either a stored form for what ormsgpack takes no notice of (odd keys, lone surrogates, bytearrays), or
the path to what cannot be stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, cast

import ormsgpack

from keepstep.codec import forms
from keepstep.codec.registry import Registry, Unknown, member_form
from keepstep.errors import CannotStore

PLAIN_DEPTH_MAX = 100  # the fast pass allows 255; here each takes five of the 1,000 frames that Python allows
TAGGED_DEPTH_MAX = 48  # tuples, sets, instances ...: each is its own pass, and C stack when read

_Path = tuple["_Path | None", str]  # the pieces are put together only when there is something to say


def encode_slowly(value: Any, registry: Registry, at: str, options: int) -> bytes:
    """Encode the value, or raise CannotStore with the path to what has no stored form."""
    walk = _Walk(registry, options)
    try:
        return walk.pack(walk.shadow(value, (None, at), 0, 0), (None, at))
    except RecursionError:
        raise _too_deep((None, at)) from None


class _Walk:
    def __init__(self, registry: Registry, options: int) -> None:
        self.registry = registry
        self.options = options
        self.open: set[int] = set()  # the containers we are inside of

    def pack(self, shadow: Any, path: _Path) -> bytes:
        try:
            return ormsgpack.packb(shadow, option=self.options)
        except (TypeError, ValueError, RecursionError) as error:  # nothing we know of
            raise CannotStore(f"{_text(path)} cannot be stored: {error}") from error

    def shadow(self, value: Any, path: _Path, plain: int, tagged: int) -> Any:
        """The same value with every part that ormsgpack would refuse or flatten already in its stored form."""
        cls = cast(type[Any], type(value))
        if value is None or cls is bool or cls is float or cls is bytes:
            return value
        if cls is str:
            return _text_form(value)
        if cls is int and forms.INT_MIN <= value <= forms.INT_MAX:
            return value
        if cls is bytearray:
            return ormsgpack.Ext(forms.BYTEARRAY, bytes(value))
        try:
            leaf = forms.form_of(value)
        except forms.NoForm as error:
            raise CannotStore(f"{_text(path)} {error}.") from None
        return self.enter(value, path, plain, tagged) if leaf is None else leaf

    def enter(self, value: Any, path: _Path, plain: int, tagged: int) -> Any:
        if id(value) in self.open:
            raise CannotStore(f"{_text(path)} contains itself, and a circle has no stored form; leave it out.")
        if plain > PLAIN_DEPTH_MAX or tagged > TAGGED_DEPTH_MAX:
            raise _too_deep(path)
        self.open.add(id(value))
        try:
            return self.container(value, path, plain, tagged)
        finally:
            self.open.discard(id(value))

    def container(self, value: Any, path: _Path, plain: int, tagged: int) -> Any:
        cls = cast(type[Any], type(value))
        if cls is list:
            return self.items(value, path, plain + 1, tagged)
        if cls is dict:
            return self.mapping(value, path, plain, tagged)
        if cls is tuple:
            return self.ext(forms.TUPLE, self.items(value, path, 1, tagged + 1), path)
        if cls is set or cls is frozenset:
            elements = [self.pack(self.shadow(one, (path, "{...}"), 1, tagged + 1), path) for one in value]
            return ormsgpack.Ext(forms.SET if cls is set else forms.FROZENSET, array_of(sorted(elements)))
        return self.instance(value, path, tagged)

    def items(self, value: Iterable[Any], path: _Path, plain: int, tagged: int) -> list[Any]:
        return [self.shadow(one, (path, f"[{index}]"), plain, tagged) for index, one in enumerate(value)]

    def mapping(self, value: dict[Any, Any], path: _Path, plain: int, tagged: int) -> Any:
        if all(type(key) is str and type(_text_form(key)) is str for key in value):
            return {key: self.shadow(one, (path, _key(key)), plain + 1, tagged) for key, one in value.items()}
        flat: list[Any] = []
        for key, one in value.items():
            flat.append(self.shadow(key, (path, f" (the key {_show(key)})"), 1, tagged + 1))
            flat.append(self.shadow(one, (path, _key(key)), 1, tagged + 1))
        return self.ext(forms.DICT, flat, path)

    def instance(self, value: Any, path: _Path, tagged: int) -> Any:
        cls = cast(type[Any], type(value))
        if cls is Unknown:
            code = unknown_code(value)
            return self.ext(code, [value.tag, self.shadow(value.value, (path, ".value"), 1, tagged + 1)], path)
        tag = self.registry.tag_of(cls)
        if tag is None:
            raise CannotStore(f"{_text(path)} is {_what_to_do(cls)}.")
        if isinstance(value, Enum):
            return self.ext(forms.MEMBER, [tag, self.shadow(member_form(value), path, 1, tagged + 1)], path)
        kind = self.registry.kind_of(cls)
        assert kind is not None, "a registered class that is no Enum has a kind"
        fields = {
            name: self.shadow(one, (path, f".{name}" if name else ""), 2, tagged + 1)
            for name, one in kind.take(value).items()
        }
        return self.ext(forms.INSTANCE, [tag, fields], path)

    def ext(self, code: int, content: Any, path: _Path) -> ormsgpack.Ext:
        return ormsgpack.Ext(code, self.pack(content, path))


def unknown_code(unknown: Unknown) -> int:
    """The code an Unknown was read from: an instance has a dict of fields, a member its name or number."""
    return forms.INSTANCE if isinstance(unknown.value, dict) else forms.MEMBER


def array_of(elements: list[bytes]) -> bytes:
    """A MessagePack array of elements that are encoded already."""
    count = len(elements)
    if count < 16:
        header = bytes([0x90 | count])
    elif count < 1 << 16:
        header = b"\xdc" + count.to_bytes(2, "big")
    else:
        header = b"\xdd" + count.to_bytes(4, "big")
    return header + b"".join(elements)


def _text_form(value: str) -> Any:
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return ormsgpack.Ext(forms.STR, value.encode("utf-8", "surrogatepass"))
    return value


def _too_deep(path: _Path) -> CannotStore:
    return CannotStore(
        f"{_text(path)[:300]} is nested too deeply: about {PLAIN_DEPTH_MAX} lists and dicts, and {TAGGED_DEPTH_MAX} "
        "tuples, sets or instances, may stand in each other. Flatten it."
    )


def _text(path: _Path) -> str:
    pieces: list[str] = []
    step: _Path | None = path
    while step is not None:
        step, piece = step
        pieces.append(piece)
    return "".join(reversed(pieces))


def _key(key: Any) -> str:
    return f'["{key}"]' if type(key) is str and len(key) < 80 and key.isprintable() else f"[{_show(key)}]"


def _show(key: Any) -> str:
    if type(key) in (str, int, float, bool, bytes, type(None)):
        return ascii(key)[:80]  # a user's own repr may be long, or raise
    return f"<{type(key).__name__}>"


def _what_to_do(cls: type[Any]) -> str:
    article = "an" if re.match("[AEIOUaeiou]|Http|HTTP|Html|HTML|Xml|XML|Sql|SQL", cls.__name__) else "a"
    for base in (bool, int, float, str, bytes, list, tuple, dict, set, frozenset):
        if issubclass(cls, base) and not issubclass(cls, Enum):
            kind = base.__name__
            why = f"would read back as {kind}; convert it with {kind}(...) or leave it out"
            return f"{article} {cls.__name__}, which {why}"
    return f"{article} {cls.__name__}, which cannot be stored; register it or leave it out"
