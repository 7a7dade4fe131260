"""Values to bodies and back, with their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from keepstep.codec.envelope import pack, unpack
from keepstep.codec.values import decode, encode
from keepstep.engine.context import Engine
from keepstep.engine.error_form import error_form
from keepstep.errors import BadInput, CannotStore, Damaged, StoreError, TooLarge, shown
from keepstep.log.chain import Stored, Walk, digest_of
from keepstep.log.records import AnyRecord, decode_head

HEADS_BEFORE = 2
"""Heads read besides the one that is meant, to see whether it is the one that was written."""


def redacted(engine: Engine, value: Any, what: str) -> Any:
    """What is written in place of a value that the user gave."""
    if engine.redact is None:
        return value
    try:
        return engine.redact(value, what)
    except Exception as error:
        raise CannotStore(
            f"redact= raised {type(error).__qualname__} on the {what}; nothing of it is written."
        ) from error


def told_arguments(engine: Engine, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """What is written of a call's arguments: the positional ones, and those by name."""
    told = redacted(engine, [list(args), dict(kwargs)], "arguments")
    if not isinstance(told, list) or list(map(type, cast("list[Any]", told))) != [list, dict]:
        raise CannotStore("redact= has to return arguments as it gets them: a list, and in it a list and a dict.")
    return cast("list[Any]", told)


def given_body(engine: Engine, value: Any, what: str) -> bytes:
    """The body that is all of a value that the user gave."""
    return to_body(engine, redacted(engine, value, what), what)


def reason_body(engine: Engine, reason: Any, by: str | None) -> bytes:
    """Why somebody did something to a run, and who."""
    if reason is not None and not isinstance(reason, str):
        raise BadInput(f"reason= is {shown(reason)}; give text.")
    told = None if reason is None else redacted(engine, reason, "reason")
    return to_body(engine, {"reason": told, "by": by}, "reason")


def to_body(engine: Engine, value: Any, what: str) -> bytes:
    """The stored form of a value; `what` names it in errors."""
    data = encode(value, engine.registry, what)
    if len(data) > engine.limits.body_bytes:
        raise TooLarge(
            f"{what} takes {len(data):,} bytes; the limit is {engine.limits.body_bytes:,}. "
            "Keep large things elsewhere and their address here, or raise Limits.body_bytes."
        )
    return pack(data)


def result_body(engine: Engine, value: Any) -> tuple[bytes, CannotStore | TooLarge | None]:
    """The body of a result; when it cannot be stored, that what it is of happened all the same, and why it is lost."""
    try:
        return to_body(engine, {"result": redacted(engine, value, "result")}, "result"), None
    except (CannotStore, TooLarge) as error:
        return to_body(engine, {"lost": str(error)}, "result"), error


def error_told(engine: Engine, error: BaseException) -> dict[str, str]:
    """What is stored of an error: its class alone when its text could not be redacted."""
    form = error_form(error)
    try:
        return {**form, **{name: str(redacted(engine, form[name], "error")) for name in ("message", "traceback")}}
    except CannotStore as failure:
        return {**form, "message": str(failure), "traceback": ""}


def from_body(engine: Engine, body: bytes) -> Any:
    """Read a value back."""
    return decode(unpack(body), engine.registry)


def checked(run_id: str, one: Stored) -> AnyRecord:
    """A record's head, after making sure that it is this record's and that its body is the one it names."""
    record = head_of(run_id, one)
    if one.body is not None and (record.body is None or digest_of(one.body) != record.body):
        raise damaged(run_id, one.seq, "Its body is not the one that was written.")
    return record


def head_of(run_id: str, one: Stored) -> AnyRecord:
    """A record's head; whether it is the one that was written, only the chain can tell."""
    try:
        record = decode_head(one.head)
    except Damaged as error:
        raise damaged(run_id, one.seq, str(error)) from None
    if record.seq != one.seq:
        raise damaged(run_id, one.seq, f"It calls itself record {record.seq}.")
    return record


async def written_head(engine: Engine, run_id: str, seq: int) -> AnyRecord | None:
    """One head, as it was written; None when there is no such record.

    Two records before it are enough to tell: damage to the first one's digest is taken for damage to the second.
    """
    first = max(0, seq - HEADS_BEFORE - 1)
    found = await engine.store.records(run_id, after=first, until=seq, bodies=False)
    walk = Walk(run_id)
    if first and found:
        walk.begin_after(found.pop(0))
    for one in found:
        record, damage = walk.step(one)
        if one.seq == seq:
            if record is None:
                return head_of(run_id, one)  # which says why it cannot be read
            for what in (what for at, what in damage if at == seq):
                raise damaged(run_id, seq, f"{what.capitalize()}.")
            return record
    return None


def damaged(run_id: str, seq: int, what: str) -> Damaged:
    """The error for a record that cannot be read."""
    return Damaged(
        f"Record {seq} of run {run_id!r} is damaged: {what} store.verify({run_id!r}) names everything that is wrong "
        "and the last good checkpoint, which store.at(..., seq=) still reads."
    )


async def value_at(engine: Engine, run_id: str, seq: int) -> Any:
    """The value in the body of one record; None when it has none."""
    return (await record_at(engine, run_id, seq))[1] if seq else None


async def record_at(engine: Engine, run_id: str, seq: int) -> tuple[AnyRecord, Any]:
    """One record, and the value in its body; None when it has none."""
    found = await engine.store.pick(run_id, [seq])
    if not found:
        raise damaged(run_id, seq, "It is missing.")
    record = checked(run_id, found[0])
    if found[0].body is None:
        if record.body is not None:
            raise damaged(run_id, seq, "Its body is gone.")
        return record, None
    try:
        return record, from_body(engine, found[0].body)
    except StoreError as error:
        raise damaged(run_id, seq, str(error)) from error
