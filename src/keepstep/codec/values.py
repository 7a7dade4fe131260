"""Values to MessagePack and back, every type exactly as it was.

ormsgpack encodes what MessagePack has (None, bool, int, float, str, bytes, list, dict with text keys) in one
C pass and hands everything else to `_Pass.default`, which answers with an extension (codes: `forms`). What the
pass refuses goes through `walk` once more, slowly, which either finds a form or names the path.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, cast

import ormsgpack

from keepstep.codec import forms
from keepstep.codec.buffers import BUFFERS, may_hold_binary, types_in
from keepstep.codec.kinds import Misfit
from keepstep.codec.large_blocks import keep_large_blocks
from keepstep.codec.registry import Registry, Unknown, member_form
from keepstep.codec.walk import TAGGED_DEPTH_MAX, array_of, encode_slowly, unknown_code
from keepstep.errors import Damaged, KeepstepError, StateMismatch

_OPTIONS = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)

_LARGE_BYTES = 1 << 16


def encode(value: Any, registry: Registry, at: str = "state") -> bytes:
    """Encode one value; what has no stored form raises CannotStore, with the path that begins with `at`."""
    encoder = Encoder(registry)
    data = encoder.fast(value)
    if data is None or (may_hold_binary(data) and types_in(value) & BUFFERS):
        return encoder.slow(value, at)
    return data


class Encoder:
    """Encodes many values in a row; the parts of one state."""

    __slots__ = ("_default", "_registry")

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._default = _Pass(registry).default

    def fast(self, value: Any) -> bytes | None:
        """One C pass over the value; None if it takes the slow way. Bytearrays in it pass as bytes, unseen."""
        try:
            data = ormsgpack.packb(value, self._default, _OPTIONS)
        except (TypeError, RecursionError):
            return None
        if len(data) > _LARGE_BYTES:
            keep_large_blocks(len(data))
        return data

    def slow(self, value: Any, at: str) -> bytes:
        """The walk in Python; raises CannotStore with the path that begins with `at`."""
        return encode_slowly(value, self._registry, at, _OPTIONS)


def decode(data: bytes | memoryview, registry: Registry) -> Any:
    """Read one value back; only registered classes are made, other tags read as Unknown."""
    reading = _Reading(registry)
    try:
        return ormsgpack.unpackb(data, ext_hook=reading.hook)
    except (ValueError, TypeError, RecursionError) as error:
        # ormsgpack drops what the hook raised
        if isinstance(reading.error, KeepstepError):
            raise reading.error from reading.error.__cause__
        raise Damaged(f"A stored value cannot be read: {reading.error or error}.") from reading.error or error


class _Pass:
    """One fast encoding: answers for what ormsgpack does not know. Whatever it raises sends the value the slow way."""

    __slots__ = ("depth", "registry")

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.depth = 0

    def default(self, value: Any) -> ormsgpack.Ext:
        leaf = forms.form_of(value)
        if leaf is not None:
            return leaf
        if self.depth >= TAGGED_DEPTH_MAX:
            raise RecursionError
        self.depth += 1
        try:
            return self.tagged(value)
        finally:
            self.depth -= 1

    def tagged(self, value: Any) -> ormsgpack.Ext:
        cls = cast(type[Any], type(value))
        if cls is tuple:
            return ormsgpack.Ext(forms.TUPLE, self.pack(list(value)))
        if cls is set or cls is frozenset:
            # in the order of their bytes: equal sets have equal bytes, whatever happened to them before
            elements = sorted([self.pack(one) for one in value])
            return ormsgpack.Ext(forms.SET if cls is set else forms.FROZENSET, array_of(elements))
        if cls is Unknown:
            return ormsgpack.Ext(unknown_code(value), self.checked([value.tag, value.value]))
        tag = self.registry.tag_of(cls)
        if tag is None:
            raise TypeError
        if isinstance(value, Enum):
            return ormsgpack.Ext(forms.MEMBER, self.pack([tag, member_form(value)]))
        kind = self.registry.kind_of(cls)
        assert kind is not None, "a registered class that is no Enum has a kind"
        return ormsgpack.Ext(forms.INSTANCE, self.checked([tag, kind.take(value)]))

    def pack(self, value: Any) -> bytes:
        return ormsgpack.packb(value, self.default, _OPTIONS)

    def checked(self, value: list[Any]) -> bytes:
        """Instances are not entered by the search for bytearrays, so each looks through its own fields."""
        data = self.pack(value)
        if may_hold_binary(data) and types_in(value) & BUFFERS:
            raise TypeError
        return data


class _Reading:
    """One decoding: turns extensions into values, and remembers why it could not."""

    __slots__ = ("depth", "error", "registry")

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.depth = 0
        self.error: Exception | None = None

    def hook(self, code: int, payload: bytes) -> Any:
        try:
            leaf = forms.reader_of(code)
            if leaf is not None:
                return leaf(payload)
            if self.depth >= TAGGED_DEPTH_MAX + 2:
                raise Damaged("A stored value cannot be read: it is nested deeper than anything that is written.")
            self.depth += 1
            try:
                return self.tagged(code, payload)
            finally:
                self.depth -= 1
        except Exception as error:
            self.error = self.error or error
            raise

    def tagged(self, code: int, payload: bytes) -> Any:
        content: Any = ormsgpack.unpackb(payload, ext_hook=self.hook)
        if code == forms.TUPLE:
            return tuple(content)
        if code == forms.SET:
            return set(content)
        if code == forms.FROZENSET:
            return frozenset(content)
        if code == forms.DICT:
            return dict(zip(content[::2], content[1::2], strict=True))
        if code in {forms.INSTANCE, forms.MEMBER}:
            tag, value = content
            return build(tag, value, self.registry)
        raise Damaged(f"A stored value cannot be read: there is no extension {code}.")


def build(tag: str, value: Any, registry: Registry) -> Any:
    """Make the instance or the Enum's member again; Unknown if nobody registered the tag."""
    if not isinstance(tag, str) or not isinstance(value, (dict, str, int)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Damaged("A stored instance cannot be read: its tag and fields are not where they should be.")
    cls = registry.class_of(tag)
    if cls is None:
        return Unknown(tag, value)
    kind = registry.kind_of(cls)
    if (kind is not None) != isinstance(value, dict):
        raise StateMismatch(f"The stored {tag} does not fit {cls!r}: one is an Enum, the other is not.", "")
    try:
        if kind is not None:
            return kind.make(cast(dict[str, Any], value))
        return cls[value] if isinstance(value, str) else cls(value)  # type: ignore[index]
    except Misfit as error:
        why = str(error)
    except (KeyError, ValueError):
        why = f"it has no member {value!r}"
    raise StateMismatch(
        f"The stored {tag} does not fit {cls!r}: {why}. Give the class that default or member again, "
        "or register the class as it was under this name.",
        "",
    )
