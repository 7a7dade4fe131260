"""The records of a run's log: one frozen struct per kind, in its stored form.

A record is a *head* (the struct below, as a MessagePack array) and at most one *body* (bytes, kept beside it).
The head holds structure only: kinds, numbers, digests, names of steps and tools, labels and tags. Whatever else the
user gave (states, arguments, results, prompts, answers, errors) is in the body, because bodies are what is compressed,
sealed, and dropped by retention. A head never changes.

Fields are stored by position. New ones may only be added at the end of a kind, with a default.
"""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import msgspec

from keepstep.errors import Damaged, NewerFormat

HEAD_MAGIC = 0x4B
HEAD_VERSION = 1
_PREFIX = bytes((HEAD_MAGIC, HEAD_VERSION))

TagValue = str | int | float | bool


class Record(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What every record has. `seq`, `at_us`, `batch`, `body` and `body_bytes` are filled in when it is appended."""

    kind: ClassVar[str]

    seq: int = 0
    at_us: int = 0
    """Microseconds since 1970 by the store's clock; never smaller than in the record before."""
    epoch: int = 0
    """The claim under which it was written; 0 when written without one."""
    batch: bytes | None = None
    """Random; stands in the first record of an append, so that a writer that lost the reply finds out."""
    body: bytes | None = None
    """Digest of the stored body; None when there is none."""
    body_bytes: int = 0


# --- the run ---------------------------------------------------------------------------------------------------------


class Opened(Record, tag="opened", frozen=True, array_like=True, kw_only=True):
    """The run begins. Body: the input it was started with, if any."""

    workflow: str
    incarnation: int = 1
    parent_run: str | None = None
    parent_seq: int = 0
    parent_step: int = 0
    flow_version: str | None = None
    flow_fingerprint: bytes | None = None
    effects: str | None = None
    """Of a fork: what it does about its parent's effects: `ask`, `reuse` or `fresh`."""


class Saved(Record, tag="saved", frozen=True, array_like=True, kw_only=True):
    """A checkpoint. Body: a frame of the state."""

    step: int
    next: str | None = None
    label: str | None = None
    line: int = 1
    parent: int = 0
    """Seq of the checkpoint before it on its line; 0 for the first."""
    depth: int = 1
    """How many checkpoints lead to this one, itself included."""
    jump: int = 0
    """Seq of the ancestor whose depth is this depth without its lowest set bit; 0 for none."""
    jump_step: int = 0
    frame: int = 0
    """0 key, 1 segment, 2 delta."""
    bases: list[int] = []
    """Which frames this one needs, nearest first, as distances back in seq, each from the one before it."""
    whole_bytes: int = 0
    """The state's size when encoded whole."""
    weight: int = 0
    """Stored bytes of the frames since the last key frame, this one included."""
    key_bytes: int = 0
    """Stored bytes of that key frame."""
    version: int = 1
    """The version of the user's state type."""
    flow_version: str | None = None
    """The version of the flow that saved it, and goes on from it."""
    flow_fingerprint: bytes | None = None
    """Of that flow, where it is another than before."""


class Finished(Record, tag="finished", frozen=True, array_like=True, kw_only=True):
    """The run has ended. Body: its result."""

    step: int = 0


class Failed(Record, tag="failed", frozen=True, array_like=True, kw_only=True):
    """An error ended the run. Body: the error."""

    step: int = 0
    reason: str = "raised"
    """`raised`, or `deaths` when it ended its worker too often."""
    error: str = ""
    """The error's class name."""


class CancelRequested(Record, tag="cancel_requested", frozen=True, array_like=True, kw_only=True):
    """Somebody wants the run to stop. Body: who and why."""


class Cancelled(Record, tag="cancelled", frozen=True, array_like=True, kw_only=True):
    """The run was stopped for good. Body: who and why, when no request stands before it."""


class Reopened(Record, tag="reopened", frozen=True, array_like=True, kw_only=True):
    """An ended run may go on. Body: who wanted it, and why."""

    reason: str = "entered"
    """`entered`, `rollback`, or `asked` when a person did."""


class RolledBack(Record, tag="rolled_back", frozen=True, array_like=True, kw_only=True):
    """The run continues from an earlier checkpoint, on a new line. Body: the report of what was undone."""

    to: int
    to_step: int
    line: int
    next: str | None = None
    label: str | None = None
    depth: int = 0
    jumps: list[tuple[int, int, int]] = []
    """The jump stack of the checkpoint gone back to (see `Fold.jumps`)."""
    version: int = 1
    flow_version: str | None = None
    """The version of the flow that had saved that checkpoint."""


class Tagged(Record, tag="tagged", frozen=True, array_like=True, kw_only=True):
    """Searchable marks were set; None takes one away."""

    tags: dict[str, TagValue | None]


class Noted(Record, tag="noted", frozen=True, array_like=True, kw_only=True):
    """A remark that the lifecycle ignores. Body: the remark."""

    namespace: str
    """`progress`, or `retry` when a flow's step raised and is tried again (the key is its name)."""
    key: str | None = None


class Pruned(Record, tag="pruned", frozen=True, array_like=True, kw_only=True):
    """Bodies were dropped, or stored anew as another frame, in the same transaction."""

    dropped: list[tuple[int, int]] = []
    """Ranges of seqs, both ends included."""
    renewed: list[tuple[int, bytes, int, int, list[int]]] = []
    """(seq, the new body's digest, its bytes, the new frame kind, its new bases)."""


# --- the claim -------------------------------------------------------------------------------------------------------


class Claimed(Record, tag="claimed", frozen=True, array_like=True, kw_only=True):
    """An owner got the right to write."""

    owner: str
    reason: str = "entered"
    """`entered`, `worker`, `rollback`, or `took_over` when the last owner was dead or its lease had passed."""
    before: str | None = None
    """The owner that a takeover took it from."""


class Released(Record, tag="released", frozen=True, array_like=True, kw_only=True):
    """The right was given back, or taken away. Body: who took it and why."""

    reason: str = "left"


# --- an effect -------------------------------------------------------------------------------------------------------


class Began(Record, tag="began", frozen=True, array_like=True, kw_only=True):
    """An effect is about to start. Body: key, idempotency key, target, arguments asked for and executed."""

    key: bytes
    tool: str
    once: bool = True
    attempt: int = 1
    step: int = 0
    line: int = 1
    arguments: bytes | None = None
    """Digest of the arguments."""
    tool_key: bytes | None = None
    """Digest of what the tool itself calls the same thing (an invoice), when it says so."""
    approval: int = 0
    """Seq of the answer that this spends; 0 when none was needed."""
    outer: bytes | None = None
    """Key of the effect inside which this one runs."""
    reversible: bool = False
    idempotent: bool = False
    undo: str | None = None
    """The tool that undoes it."""


class Returned(Record, tag="returned", frozen=True, array_like=True, kw_only=True):
    """An effect ended with a result. Body: the result. A memo has no `began`: its fields stand here."""

    key: bytes
    began: int = 0
    tool: str = ""
    arguments: bytes | None = None
    took_us: int = 0
    step: int = 0
    line: int = 1


class Raised(Record, tag="raised", frozen=True, array_like=True, kw_only=True):
    """An effect is known not to have happened. Body: the error."""

    key: bytes
    began: int = 0
    error: str = ""


class Doubted(Record, tag="doubted", frozen=True, array_like=True, kw_only=True):
    """Nobody knows whether an effect happened. Body: what is known."""

    key: bytes
    began: int = 0
    reason: str = "raised"


class Settled(Record, tag="settled", frozen=True, array_like=True, kw_only=True):
    """A doubt was resolved. Body: the result, who said so."""

    key: bytes
    began: int = 0
    happened: bool = True
    by: str = "person"
    """`person`, `reconciled` or `witness`."""


class Witnessed(Record, tag="witnessed", frozen=True, array_like=True, kw_only=True):
    """A worker that had lost its claim tells how its effect ended. Body: the result or the error."""

    key: bytes
    began: int = 0
    outcome: str = "returned"


class UndoBegan(Record, tag="undo_began", frozen=True, array_like=True, kw_only=True):
    """An effect is about to be undone. Body: the idempotency key of the undo."""

    key: bytes
    began: int = 0
    attempt: int = 1
    to: int = 0
    """Seq of the checkpoint that the run is being rolled back to."""


class Undone(Record, tag="undone", frozen=True, array_like=True, kw_only=True):
    """An effect was undone; its key is free again. Body: what the undo returned."""

    key: bytes
    began: int = 0


class UndoFailed(Record, tag="undo_failed", frozen=True, array_like=True, kw_only=True):
    """An undo did not work. Body: the error."""

    key: bytes
    began: int = 0
    in_doubt: bool = False


class Inherited(Record, tag="inherited", frozen=True, array_like=True, kw_only=True):
    """A fork got an effect of its parent. Body: the result."""

    key: bytes
    tool: str
    parent_seq: int
    outcome: str = "returned"
    """`returned`, `open` (in flight at the fork) or `doubted`."""
    arguments: bytes | None = None
    tool_key: bytes | None = None
    reversible: bool = False


# --- a gate ----------------------------------------------------------------------------------------------------------


class Asked(Record, tag="asked", frozen=True, array_like=True, kw_only=True):
    """A question was put. Body: prompt, schema, default, arguments."""

    gate: str
    key: bytes
    about: str = "question"
    """`question`, `approval`, `doubt`, or `deaths`: what is to become of a run that was given up."""
    until_us: int | None = None
    effect: bytes | None = None


class Answered(Record, tag="answered", frozen=True, array_like=True, kw_only=True):
    """The question was answered. Body: the answer, by whom."""

    gate: str
    key: bytes = b""
    asked: int = 0


class Expired(Record, tag="expired", frozen=True, array_like=True, kw_only=True):
    """The deadline passed without an answer; the default stands, or the failure."""

    gate: str
    key: bytes = b""
    asked: int = 0


# --- time and mail ---------------------------------------------------------------------------------------------------


class Slept(Record, tag="slept", frozen=True, array_like=True, kw_only=True):
    """The run waits until a time, or for a message of a name until then."""

    key: bytes
    until_us: int | None = None
    message: str | None = None


class Sent(Record, tag="sent", frozen=True, array_like=True, kw_only=True):
    """A message came. Body: its value."""

    name: str
    message_id: bytes | None = None


class Took(Record, tag="took", frozen=True, array_like=True, kw_only=True):
    """The run took a message, or gave up waiting for one (`sent` 0)."""

    key: bytes
    sent: int = 0


AnyRecord = (
    Opened | Saved | Finished | Failed | CancelRequested | Cancelled | Reopened | RolledBack | Tagged | Noted | Pruned
    | Claimed | Released
    | Began | Returned | Raised | Doubted | Settled | Witnessed | UndoBegan | Undone | UndoFailed | Inherited
    | Asked | Answered | Expired
    | Slept | Sent | Took
)  # fmt: skip

KINDS: dict[str, type[Record]] = {str(one.__struct_config__.tag): one for one in get_args(AnyRecord)}
for _name, _type in KINDS.items():
    _type.kind = _name

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(AnyRecord)


def encode_head(record: Record) -> bytes:
    """The stored form of a head."""
    return _PREFIX + _encoder.encode(record)


def decode_head(head: bytes) -> AnyRecord:
    """Read a head back; `Damaged` when it is not one."""
    if head[:2] != _PREFIX:
        if head[:1] == _PREFIX[:1] and len(head) > 1 and head[1] > HEAD_VERSION:
            raise NewerFormat(f"A record has format {head[1]}; this keepstep reads up to {HEAD_VERSION}: upgrade it.")
        raise Damaged("A record's head does not begin as heads do.")
    try:
        return _decoder.decode(memoryview(head)[2:])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Damaged(f"A record's head cannot be read: {error}.") from None
