"""The ledger index: key digest → where a keyed thing began and how it ended. Computed from the records."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from keepstep.log.chain import DIGEST_BYTES
from keepstep.log.records import Answered, Asked, Began, Expired, Inherited, Record, Saved, Sent, Slept, Took

_OUTCOMES = frozenset(("returned", "raised", "doubted", "settled", "undo_began", "undone", "undo_failed"))
"""Not `witnessed`: what a worker that has lost its claim tells is evidence, and settles nothing by itself."""


THING = "tool_key"
"""What stands in the place of a kind in a line that finds an effect by what its tool calls the thing."""


class LedgerEntry(NamedTuple):
    """One line of the index. `ended` is 0 while nothing has ended it."""

    key: bytes
    began: int
    ended: int
    how: str
    """The kind of the record at `ended`, or at `began` while it is open."""


def key_of_label(label: str) -> bytes:
    """The key under which the newest checkpoint with this label is found."""
    return blake2b(label.encode(), digest_size=DIGEST_BYTES, person=b"keepstep label").digest()


def key_of_thing(tool: str, tool_key: bytes) -> bytes:
    """The key under which the newest effect of a tool on one thing is found, whatever that effect's own key."""
    return blake2b(tool_key + tool.encode(), digest_size=DIGEST_BYTES, person=b"keepstep thing").digest()


def ledger_changes(record: Record) -> list[LedgerEntry]:
    """How a record changes the index."""
    own = ledger_change(record)
    changes = [] if own is None else [own]
    if isinstance(record, Began | Inherited) and record.tool_key is not None:
        changes.append(LedgerEntry(key_of_thing(record.tool, record.tool_key), record.seq, record.seq, THING))
    return changes


def ledger_change(record: Record) -> LedgerEntry | None:
    """The line of the index about the record itself; None when there is none."""
    if isinstance(record, Saved):
        if record.label is None:
            return None
        return LedgerEntry(key_of_label(record.label), record.seq, record.seq, record.kind)
    if isinstance(record, Began | Asked | Slept):
        return LedgerEntry(record.key, record.seq, 0, record.kind)
    if isinstance(record, Sent):
        return (
            None if record.message_id is None else LedgerEntry(record.message_id, record.seq, record.seq, record.kind)
        )
    if isinstance(record, Inherited | Took):
        return LedgerEntry(record.key, record.seq, record.seq, record.kind)
    if isinstance(record, Answered | Expired):
        return LedgerEntry(record.key, record.asked, record.seq, record.kind) if record.key else None
    if record.kind in _OUTCOMES:
        began: int = record.began or record.seq  # type: ignore[attr-defined]
        return LedgerEntry(record.key, began, record.seq, record.kind)  # type: ignore[attr-defined]
    return None
