"""Frames: how a row of states is stored, each as what changed since another.

A *key* frame holds all parts. A *change* frame holds what turns one state's parts into another's; it is used for
a *delta* (since the frame before) and for a *segment* (since the last segment or key) alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from keepstep.codec.parts import Parts
from keepstep.codec.patch import SMALL_BYTES, Splices, apply_splices, splices_between
from keepstep.errors import Damaged


class _Full(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """[0, whole, tag, {key: part}]."""

    whole: bool
    tag: str | None
    items: dict[str, bytes]


class _Change(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """[1, [removed key], [key] or nil, {key: part}, {key: [keep, delete, insert, ...]}]."""

    removed: list[str]
    order: list[str] | None  # all keys, when they stand otherwise than the old ones with the new ones appended
    items: dict[str, bytes]
    patches: dict[str, list[int | bytes]]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Full | _Change)


def key_frame(parts: Parts) -> bytes:
    """The frame that holds all parts."""
    return _encoder.encode(_Full(parts.whole, parts.tag, parts.items))


def change_frame(old: Parts, new: Parts) -> bytes | None:
    """The frame that holds what turns the old parts into the new ones; None when they have nothing in common."""
    if old.whole != new.whole or old.tag != new.tag:
        return None
    items: dict[str, bytes] = {}
    patches: dict[str, Splices] = {}
    for key, data in new.items.items():
        before = old.items.get(key)
        if before is data or before == data:
            continue
        if before is None or len(data) <= SMALL_BYTES:
            items[key] = data
            continue
        found = new.splices.get(key)
        splices = found[1] if found is not None and found[0] is before else splices_between(before, data)
        if splices is None:
            items[key] = data
        else:
            patches[key] = splices
    if len(items) == len(new.items) and items:
        return None
    removed = [key for key in old.items if key not in new.items]
    kept = [key for key in old.items if key in new.items] if removed else list(old.items)
    kept += [key for key in items if key not in old.items]
    order = None if kept == list(new.items) else list(new.items)
    return _encoder.encode(_Change(removed, order, items, patches))


def rebuild(frames: Sequence[bytes]) -> Parts:
    """Carry out the frames in order, the first a key frame, and give the parts that result."""
    state: _Full | None = None
    items: dict[str, bytes | bytearray] = {}
    for content in frames:
        frame = _read(content)
        if isinstance(frame, _Full):
            state, items = frame, {**frame.items}
        elif state is None:
            raise Damaged("A stored state cannot be read: its first frame is not a key frame.")
        else:
            items = _change(items, frame)
    if state is None:
        raise Damaged("A stored state cannot be read: it has no frames.")
    parts = {key: data if isinstance(data, bytes) else bytes(data) for key, data in items.items()}
    return Parts(state.whole, parts, sum(map(len, parts.values())), state.tag)


def _read(content: bytes) -> _Full | _Change:
    try:
        return _decoder.decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Damaged(f"A stored frame cannot be read: {error}.") from error


def _change(items: dict[str, bytes | bytearray], frame: _Change) -> dict[str, bytes | bytearray]:
    try:
        for key in frame.removed:
            del items[key]
        for key, splices in frame.patches.items():
            part = items[key]
            if isinstance(part, bytes):
                part = items[key] = bytearray(part)  # copied once, however many patches follow
            apply_splices(part, splices)
        items.update(frame.items)
        if frame.order is None:
            return items
        if len(frame.order) != len(items):
            raise Damaged("A stored frame does not fit the one before it: it orders other keys.")
        return {key: items[key] for key in frame.order}
    except KeyError as error:
        raise Damaged(f"A stored frame does not fit the one before it: there is no part {error}.") from error
