"""The lines of a run's file, and what they say.

A commit, and the only line of a file whose run was deleted:

    {"run":ID,"batch":N,"records":[RECORD ...],"row":{...},"ledger":[{"key":HEX,"began":N,"ended":N,"how":KIND} ...],"check":HEX}
    {"run":ID,"batch":N,"tombstone":{"incarnation":N,"epoch":N,"at_us":N},"check":HEX}

A RECORD is `{"seq":N,"head":{...},"digest":HEX,"body":BASE64}`, without `body` when there is none. Heads and rows are
MessagePack arrays; here their values have the names of their fields, in the order in which they are stored, and
bytes are text that begins with `hex:`. Reading needs no field's name: it takes the values in order. Where JSON cannot say
a value exactly (a tag that is not a number, a label that begins with `hex:`), `raw` or `row_raw` has the bytes too.

`check` is the 16-byte BLAKE2b of the line up to the comma before it. Lines are UTF-8 and end with a line feed.
"""  # noqa: E501 - the forms stay on one line

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, cast

import msgspec

from keepstep.log.chain import Stored
from keepstep.log.fold import Fields, Fold, decode_fold, encode_fold
from keepstep.log.ledger import LedgerEntry
from keepstep.log.records import HEAD_MAGIC, KINDS

_CHECK = b',"check":"'
_END = b'"}'
_CHECK_BYTES = len(_CHECK) + 32 + len(_END)
_HEX = "hex:"
_HEAD_NAMES: dict[str, tuple[str, ...]] = {
    kind: ("format", "kind", *record.__struct_fields__) for kind, record in KINDS.items()
}
_ROW_NAMES = Fields.__struct_fields__


class LedgerLine(msgspec.Struct):
    """A ledger entry in a line."""

    key: str
    began: int
    ended: int
    how: str

    def entry(self) -> LedgerEntry:
        return LedgerEntry(bytes.fromhex(self.key), self.began, self.ended, self.how)


class RecordLine(msgspec.Struct, omit_defaults=True):
    """A record in a line."""

    seq: int
    head: dict[str, Any]
    digest: str
    body: bytes | None = None
    raw: bytes | None = None

    def stored(self) -> Stored:
        head = self.raw if self.raw is not None else _pack_head(self.head)
        return Stored(self.seq, head, bytes.fromhex(self.digest), self.body)


class Tombstone(msgspec.Struct):
    """What is left of a deleted run."""

    incarnation: int
    epoch: int
    at_us: int


class Numbered(msgspec.Struct):
    """A record of which only the number matters."""

    seq: int


class Outline(msgspec.Struct):
    """A line, read as far as it takes to know where things are."""

    run: str
    batch: int
    records: list[Numbered] = []
    row: msgspec.Raw = msgspec.Raw()
    row_raw: bytes | None = None
    ledger: list[LedgerLine] = []
    tombstone: Tombstone | None = None

    def fold(self) -> Fold:
        """The row, as it was after this commit."""
        if self.row_raw is not None:
            return decode_fold(self.row_raw)
        return decode_fold(_pack(msgspec.json.decode(self.row).values()))


class _Records(msgspec.Struct):
    records: list[RecordLine] = []


_outline = msgspec.json.Decoder(Outline)
_records = msgspec.json.Decoder(_Records)
_json = msgspec.json.Encoder()
_pack_values = msgspec.msgpack.Encoder()


def commit_line(
    run_id: str, batch: int, records: Sequence[Stored], row: Fields, ledger: Iterable[LedgerEntry]
) -> bytes:
    """The line of a commit, with its line feed."""
    packed = encode_fold(row)
    named = _named(_ROW_NAMES, msgspec.msgpack.decode(packed))
    content: dict[str, Any] = {
        "run": run_id,
        "batch": batch,
        "records": [_record(one) for one in records],
        "row": named,
        "ledger": [LedgerLine(one.key.hex(), one.began, one.ended, one.how) for one in ledger],
    }
    if _reread(named) != packed:
        content["row_raw"] = packed
    return _sealed(content)


def tombstone_line(run_id: str, batch: int, tombstone: Tombstone) -> bytes:
    """The only line that is left when a run is deleted."""
    return _sealed({"run": run_id, "batch": batch, "tombstone": tombstone})


def renewed_line(line: bytes, bodies: dict[int, bytes | None]) -> bytes:
    """A line (without its line feed) with other bodies (None: dropped); what else it says stays."""
    content = msgspec.json.decode(line[:-_CHECK_BYTES] + b"}")
    for record in content.get("records", ()):
        if record["seq"] in bodies:
            record.pop("body", None)
            body = bodies[record["seq"]]
            if body is not None:
                record["body"] = body
    return _sealed(content)


def is_whole(line: bytes) -> bool:
    """Whether a line (without its line feed) is one that was written."""
    content, check = line[:-_CHECK_BYTES], line[-_CHECK_BYTES:]
    return check == _CHECK + _digest(content) + _END


def outline(line: bytes) -> Outline:
    """What a whole line says, without its records' contents. Raises `msgspec.MsgspecError`."""
    return _outline.decode(line)


def records_in(line: bytes) -> list[Stored]:
    """The records of a whole line."""
    return [one.stored() for one in _records.decode(line).records]


def _sealed(content: dict[str, Any]) -> bytes:
    text = _json.encode(content)[:-1]
    return text + _CHECK + _digest(text) + _END + b"\n"


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=16).hexdigest().encode()


# --- packed values and their names -----------------------------------------------------------------------------------


def _record(one: Stored) -> RecordLine:
    kind, *values = msgspec.msgpack.decode(one.head[2:], type=list[Any])
    named = _named(_HEAD_NAMES.get(kind, ()), [one.head[1], kind, *values])
    exact = _pack_head(_json_again(named)) == one.head
    return RecordLine(one.seq, named, one.digest.hex(), one.body, None if exact else one.head)


def _named(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return {name: _readable(value) for name, value in zip(names, values, strict=False)}


def _pack_head(named: dict[str, Any]) -> bytes:
    if not named:
        return b""
    version, *values = named.values()
    return bytes((HEAD_MAGIC, version)) + _pack(values)


def _pack(values: Iterable[Any]) -> bytes:
    return _pack_values.encode([_stored(value) for value in values])


def _reread(named: dict[str, Any]) -> bytes:
    return _pack(_json_again(named).values())


def _json_again(named: dict[str, Any]) -> dict[str, Any]:
    """What reading will see: the proof that a value survives JSON is to send it there and back."""
    return msgspec.json.decode(_json.encode(named))


def _readable(value: Any) -> Any:
    match value:
        case bytes():
            return _HEX + value.hex()
        case list():
            return [_readable(one) for one in cast("list[Any]", value)]
        case dict():
            return {_readable(name): _readable(one) for name, one in cast("dict[Any, Any]", value).items()}
        case _:
            return value


def _stored(value: Any) -> Any:
    match value:
        case str() if value.startswith(_HEX):
            return _bytes_or_text(value)
        case list():
            return [_stored(one) for one in cast("list[Any]", value)]
        case dict():
            return {_stored(name): _stored(one) for name, one in cast("dict[Any, Any]", value).items()}
        case _:
            return value


def _bytes_or_text(text: str) -> bytes | str:
    try:
        return bytes.fromhex(text[len(_HEX) :])
    except ValueError:
        return text
