"""What a run's records add up to. The fold of a log is the run's row: everything is computed here, once.

It is bounded in size and pure: no lease time stands in it, so it can always be rebuilt from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

import msgspec

from keepstep.errors import NotAllowed
from keepstep.log.lifecycle import ABSENT, BY_ANYBODY, allowed_in, leads_to
from keepstep.log.records import (
    AnyRecord,
    Asked,
    Began,
    Cancelled,
    CancelRequested,
    Claimed,
    Failed,
    Inherited,
    Noted,
    Opened,
    Record,
    Released,
    RolledBack,
    Saved,
    Sent,
    Slept,
    Tagged,
    TagValue,
    Took,
    UndoBegan,
)  # fmt: skip


class Wait(msgspec.Struct, frozen=True, array_like=True):
    """Something a run waits for: an answer, a time, a message."""

    kind: str
    """`gate`, `time` or `message`."""
    name: str
    """The gate's id, or the message's name."""
    seq: int
    until_us: int | None = None
    about: str = ""
    key: bytes = b""
    at_us: int = 0


class Fields(msgspec.Struct, array_like=True, kw_only=True):
    """The row of a run."""

    status: str = ABSENT
    workflow: str = ""
    incarnation: int = 0
    seq: int = 0
    digest: bytes = b""
    epoch: int = 0
    owner: str | None = None

    step: int | None = None
    next: str | None = None
    label: str | None = None
    line: int = 1
    lines: int = 1
    saved: int = 0
    """Seq of the current checkpoint."""
    depth: int = 0
    jumps: list[tuple[int, int, int]] = []
    """(seq, step, depth) of the current checkpoint and of the ancestors reached by clearing its depth's lowest bits,
    deepest last. A save needs them to name its own jump without reading; at most one per bit of the depth."""
    version: int = 1

    deaths: int = 0
    """Takeovers since the last new checkpoint."""
    parent_run: str | None = None
    parent_seq: int = 0
    parent_step: int = 0
    flow_version: str | None = None
    flow_fingerprint: bytes | None = None
    tags: dict[str, TagValue] = {}

    created_us: int = 0
    changed_us: int = 0
    """When the status last changed."""
    saved_us: int = 0
    at_us: int = 0
    """When the last record was written."""

    note: int = 0
    """Seq of the last progress note."""
    ended: int = 0
    """Seq of the record that ended the run, while it is ended."""
    cancel: int = 0
    """Seq of the request to cancel that is open, or that ended the run."""
    waits: list[Wait] = []
    woken: bool = False
    """Something it waited for has come since the claim."""
    open_effects: dict[bytes, int] = {}
    """Key digest → seq of effects that began and have no outcome yet."""
    doubts: dict[bytes, int] = {}
    """Key digest → seq of doubts that nobody settled."""
    mail: list[tuple[str, int]] = []
    """(name, seq) of messages that came and were not taken yet."""
    undoing: int = 0
    """Seq of the checkpoint that a rollback under way goes back to."""
    undoing_from: int = 0
    """Seq at which that rollback began."""
    attempts: int = 0
    """How often the step after the current checkpoint has raised, and is tried again."""


class Fold(Fields, frozen=True):  # pyright: ignore[reportGeneralTypeIssues]  # msgspec allows a frozen view
    """The frozen view of a row."""

    @property
    def due_us(self) -> int | None:
        """When a waiting run goes on by itself."""
        if self.status not in ("paused", "sleeping"):
            return None
        return min((wait.until_us for wait in self.waits if wait.until_us is not None), default=None)

    @property
    def asking_us(self) -> int | None:
        """Since when it has waited for a person; None when it does not."""
        return min((wait.at_us for wait in self.waits if wait.kind == "gate"), default=None)


class Folding(Fields):
    """The accumulator: a row that takes in records. Its fields are set anew; no list or dict in it is ever changed."""

    def admit(self, record: Record, run_id: str, *, holder: bool) -> str:
        """Return the table's cell for this record, or raise `NotAllowed`."""
        kind = record.kind
        cell = leads_to(kind, self.status)
        if cell is None:
            allowed = " or ".join(allowed_in(kind))
            raise NotAllowed(f"Run {run_id!r} is {self.status}; {kind!r} needs it to be {allowed}.", run_id)
        if self.status == "running" and not holder and kind not in BY_ANYBODY:
            raise NotAllowed(
                f"Run {run_id!r} is held by {self.owner}; only its holder can write {kind!r}. Wait until it is free.",
                run_id,
            )
        return cell

    def apply(self, record: Record, cell: str, digest: bytes) -> None:
        """Take in the next record, whose cell of the lifecycle table is given."""
        self.seq = record.seq
        self.digest = digest
        self.at_us = record.at_us
        take = _TAKE.get(record.kind)
        woke = bool(take(self, record)) if take else False
        if cell != "=":
            self._go(self._resolve(cell, woke=woke), record)

    def _resolve(self, cell: str, *, woke: bool) -> str:
        if cell == "wakes":
            return "ready" if woke else self.status
        if cell == "rests":
            return self._rest() if woke else "ready"
        return cell

    def _rest(self) -> str:
        """Where a run goes that gave up its claim in order to wait."""
        if self.woken or not self.waits:
            return "ready"
        return "paused" if any(wait.kind == "gate" for wait in self.waits) else "sleeping"

    def _go(self, status: str, record: Record) -> None:
        if status != self.status:
            self.status = status
            self.changed_us = record.at_us

    def copy(self) -> Folding:
        """One that moves on by itself."""
        return copy(self)

    def freeze(self) -> Fold:
        """A frozen copy."""
        return msgspec.msgpack.decode(msgspec.msgpack.encode(self), type=Fold)


# How each kind changes the row, besides its status. For `wakes` and `rests` the answer says whether it does.


def _opened(row: Folding, record: Opened) -> None:
    row.workflow = record.workflow
    row.incarnation = record.incarnation
    row.epoch = record.epoch
    row.parent_run, row.parent_seq, row.parent_step = record.parent_run, record.parent_seq, record.parent_step
    row.flow_version, row.flow_fingerprint = record.flow_version, record.flow_fingerprint
    row.created_us = row.changed_us = record.at_us


def _saved(row: Folding, record: Saved) -> None:
    row.step, row.next, row.label, row.line = record.step, record.next, record.label, record.line
    row.saved, row.saved_us, row.depth, row.version = record.seq, record.at_us, record.depth, record.version
    row.deaths = row.attempts = 0
    row.flow_version = record.flow_version or row.flow_version
    row.flow_fingerprint = record.flow_fingerprint or row.flow_fingerprint
    floor = record.depth & (record.depth - 1)
    row.jumps = [*(one for one in row.jumps if one[2] <= floor), (record.seq, record.step, record.depth)]


def _rolled_back(row: Folding, record: RolledBack) -> None:
    row.step, row.next, row.label, row.version = record.to_step, record.next, record.label, record.version
    row.saved, row.depth, row.jumps = record.to, record.depth, list(record.jumps)
    row.line = row.lines = record.line
    row.undoing = row.undoing_from = row.attempts = 0
    if record.flow_version is not None and record.flow_version != row.flow_version:
        row.flow_version, row.flow_fingerprint = record.flow_version, None
    row.waits = []


def _ended(row: Folding, record: Record) -> None:
    row.ended = record.seq
    row.owner = None
    row.waits = []
    row.cancel = 0


def _failed(row: Folding, record: Failed) -> None:
    """A run that was given up asks what is to become of it."""
    asking = [wait for wait in row.waits if wait.about == "deaths"]
    _ended(row, record)
    row.waits = asking


def _cancelled(row: Folding, record: Cancelled) -> None:
    request = row.cancel or record.seq
    _ended(row, record)
    row.cancel = request


def _reopened(row: Folding, record: Record) -> None:
    row.ended = 0
    row.cancel = 0
    row.waits = []
    row.deaths = row.attempts = 0


def _cancel_requested(row: Folding, record: CancelRequested) -> None:
    row.cancel = row.cancel or record.seq


def _tagged(row: Folding, record: Tagged) -> None:
    tags = {**row.tags, **record.tags}
    row.tags = {name: value for name, value in tags.items() if value is not None}


def _noted(row: Folding, record: Noted) -> None:
    if record.namespace == "progress":
        row.note = record.seq
    elif record.namespace == "retry":
        row.attempts += 1


def _claimed(row: Folding, record: Claimed) -> None:
    row.owner, row.epoch = record.owner, record.epoch
    row.deaths += record.reason == "took_over"
    row.woken = False
    row.waits = [wait for wait in row.waits if wait.kind == "gate"]


def _released(row: Folding, record: Released) -> bool:
    row.owner = None
    return record.reason == "waits"


def _began(row: Folding, record: Began) -> None:
    _closed(row, record)
    if record.once:
        row.open_effects = {**row.open_effects, record.key: record.seq}


def _closed(row: Folding, record: Any) -> None:
    """What began again, or has ended, is neither open nor in doubt any more."""
    if record.key in row.open_effects:
        row.open_effects = {key: seq for key, seq in row.open_effects.items() if key != record.key}
    if record.key in row.doubts:
        row.doubts = {key: seq for key, seq in row.doubts.items() if key != record.key}


def _doubted(row: Folding, record: Any) -> None:
    _closed(row, record)
    row.doubts = {**row.doubts, record.key: record.seq}


def _settled(row: Folding, record: Any) -> bool:
    _closed(row, record)
    return not row.doubts


def _inherited(row: Folding, record: Inherited) -> None:
    if record.outcome != "returned":
        row.doubts = {**row.doubts, record.key: record.seq}


def _asked(row: Folding, record: Asked) -> None:
    row.waits = [
        *row.waits,
        Wait("gate", record.gate, record.seq, record.until_us, record.about, record.key, record.at_us),
    ]


def _answered(row: Folding, record: Any) -> bool:
    waits = [wait for wait in row.waits if wait.kind != "gate" or wait.name != record.gate]
    woke = len(waits) < len(row.waits)
    row.waits = waits
    row.woken = row.woken or woke
    return woke


def _slept(row: Folding, record: Slept) -> None:
    kind = "message" if record.message is not None else "time"
    row.waits = [
        *row.waits,
        Wait(kind, record.message or "", record.seq, record.until_us, key=record.key, at_us=record.at_us),
    ]


def _sent(row: Folding, record: Sent) -> bool:
    row.mail = [*row.mail, (record.name, record.seq)]
    woke = any(wait.kind == "message" and wait.name == record.name for wait in row.waits)
    row.woken = row.woken or woke
    return woke


def _took(row: Folding, record: Took) -> None:
    row.mail = [one for one in row.mail if one[1] != record.sent]


def _undo_began(row: Folding, record: UndoBegan) -> None:
    row.undoing = record.to
    row.undoing_from = row.undoing_from or record.seq


_TAKE: dict[str, Callable[[Folding, Any], bool | None]] = {
    "opened": _opened,
    "saved": _saved,
    "finished": _ended,
    "failed": _failed,
    "cancelled": _cancelled,
    "cancel_requested": _cancel_requested,
    "reopened": _reopened,
    "rolled_back": _rolled_back,
    "tagged": _tagged,
    "noted": _noted,
    "claimed": _claimed,
    "released": _released,
    "began": _began,
    "returned": _closed,
    "raised": _closed,
    "doubted": _doubted,
    "settled": _settled,
    "undone": _closed,
    "inherited": _inherited,
    "asked": _asked,
    "answered": _answered,
    "expired": _answered,
    "slept": _slept,
    "sent": _sent,
    "took": _took,
    "undo_began": _undo_began,
}

_fold_decoder = msgspec.msgpack.Decoder(Fold)
_folding_decoder = msgspec.msgpack.Decoder(Folding)
_encoder = msgspec.msgpack.Encoder()


def encode_fold(row: Fields) -> bytes:
    """The stored form of a row."""
    return _encoder.encode(row)


def decode_fold(data: bytes) -> Fold:
    """Read a row back; raises `msgspec.DecodeError` when it is not one."""
    return _fold_decoder.decode(data)


def thaw(row: Fields) -> Folding:
    """A copy that takes in records."""
    return _folding_decoder.decode(_encoder.encode(row))


def fold(run_id: str, entries: Iterable[tuple[AnyRecord, bytes]]) -> Fold:
    """The fold of a log, from (record, digest) pairs. Trusts the order of what is stored."""
    row = Folding()
    for record, digest in entries:
        row.apply(record, row.admit(record, run_id, holder=True), digest)
    return row.freeze()
