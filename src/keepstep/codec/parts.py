"""A state cut in pieces: one encoding per key, so that a step stores only the keys that changed."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from keepstep.codec.buffers import BUFFERS, may_bring_binary, may_hold_binary, types_in
from keepstep.codec.patch import SMALL_BYTES, Splices, splices_between
from keepstep.codec.registry import Registry, Unknown
from keepstep.codec.values import Encoder, build, decode
from keepstep.errors import Damaged

WHOLE = ""  # the key of the one part of a state that is not cut


class Parts(msgspec.Struct, frozen=True, eq=False):
    """An encoded state, in pieces."""

    whole: bool
    """True: the state has no text keys; it is one part, under the empty key."""
    items: dict[str, bytes]
    """The encoded pieces, in the order of the state's keys (of the instance's fields)."""
    size: int
    """Bytes of all pieces together."""
    tag: str | None = None
    """The name of the registered class of which the state is an instance."""
    plain: frozenset[str] = frozenset()
    """Keys known to hold no binary value, where the next split need not look for bytearrays again."""
    splices: dict[str, tuple[bytes, Splices | None]] = {}
    """What split found already: key -> (the encoding before, what changed since). For `change_frame`."""
    is_new: bool = False
    """Split found that it has nothing in common with the parts before."""

    def __eq__(self, other: object) -> bool:
        """Whether the states are equal; what is known besides about how they were encoded does not count."""
        if not isinstance(other, Parts):
            return NotImplemented
        return (self.whole, self.items, self.tag) == (other.whole, other.items, other.tag)

    __hash__ = None  # type: ignore[assignment]


_Form = tuple[bool, str | None, str]  # whole, tag, and where errors say the state is
_NOTHING = Parts(False, {}, 0)
_LEAVES = frozenset({str, int, float, bool, type(None)})
"""Types whose values hold no binary value."""


def split(state: Any, registry: Registry, reuse: Parts | None = None, at: str = "state") -> Parts:
    """Encode the state key by key; pieces equal to those in `reuse` are the same objects afterwards."""
    tag, fields = _fields(state, registry)
    if fields is None:
        return _encode({WHOLE: state}, registry, reuse or _NOTHING, (True, None, at))
    return _encode(fields, registry, reuse or _NOTHING, (False, tag, at))


def join(parts: Parts, registry: Registry) -> Any:
    """Make the state again."""
    if parts.whole:
        if WHOLE not in parts.items:
            raise Damaged("A stored state is empty where its one part should be.")
        return decode(parts.items[WHOLE], registry)
    fields = {key: decode(data, registry) for key, data in parts.items.items()}
    return fields if parts.tag is None else build(parts.tag, fields, registry)


def _fields(state: Any, registry: Registry) -> tuple[str | None, dict[str, Any] | None]:
    """The tag and the pieces of the state; no pieces if it cannot be cut."""
    cls = cast(type[Any], type(state))
    if cls is dict:
        return None, state if _is_cut(state) else None
    if cls is Unknown:
        unknown = cast(Unknown, state)
        return (unknown.tag, unknown.value) if _is_cut(unknown.value) else (None, None)
    tag = registry.tag_of(cls)
    kind = registry.kind_of(cls)
    return (None, None) if tag is None or kind is None else (tag, kind.take(state))


def _is_cut(state: Any) -> bool:
    """Whether it is a dict of text keys, each of which can be the name of a part."""
    if type(state) is not dict or set(map(type, cast(dict[Any, Any], state))) - {str}:
        return False
    text = "".join(cast(dict[str, Any], state))
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return False
    return True


def _encode(fields: dict[str, Any], registry: Registry, reuse: Parts, form: _Form) -> Parts:
    whole, tag, _ = form
    encoder = Encoder(registry)
    fast = encoder.fast
    items: dict[str, bytes] = {}
    plain: list[str] = []
    splices: dict[str, tuple[bytes, Splices | None]] = {}
    is_new = True
    for key, value in fields.items():
        old = reuse.items.get(key)
        data = fast(value)
        if data is None:
            data = encoder.slow(value, _path(form, key))
        elif old is not None and key in reuse.plain and data == old:
            plain.append(key)
        else:
            found: Splices | None = None
            if old is not None and len(data) > SMALL_BYTES and data != old:
                found = splices_between(old, data)
                splices[key] = old, found
                is_new = is_new and found is None
            # Only what the splices bring can be a bytearray, which is what makes the search cheap in a long state.
            known = found is not None and key in reuse.plain
            if type(value) in _LEAVES or not (
                may_bring_binary(data, found) if known and found else may_hold_binary(data)
            ):
                plain.append(key)
            else:
                types = types_in(value)
                if types & BUFFERS:
                    splices.pop(key, None)
                    data = encoder.slow(value, _path(form, key))
                elif bytes not in types:
                    plain.append(key)
        if old is not None and data == old:
            data, is_new = old, False
        items[key] = data
    return Parts(whole, items, sum(map(len, items.values())), tag, frozenset(plain), splices, is_new)


def _path(form: _Form, key: str) -> str:
    whole, tag, at = form
    if whole or not (key or tag is None):
        return at
    return f'{at}["{key}"]' if tag is None else f"{at}.{key}"
