"""What is read of a run besides its row: its log, its ledger, its weight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from keepstep.log.chain import DIGEST_BYTES, Stored
from keepstep.log.ledger import LedgerEntry
from keepstep.store.base import Row, Weight
from keepstep.store.sealed_rows import read_row
from keepstep.store.sqlite.driver import Cursor
from keepstep.store.sqlite.statements import directed, sql
from keepstep.store.sqlite.views import Stands, holder_of
from keepstep.store.sqlite.writing import SEQ_BITS, SEQ_MAX


class Span(NamedTuple):
    """Which part of a log to read, as the protocol has it."""

    after: int
    until: int | None
    bodies: bool
    newest_first: bool
    limit: int | None


def read_records(cursor: Cursor, run_id: str, span: Span) -> list[Stored]:
    """A part of a run's log."""
    base = _base(cursor, run_id)
    if base is None or span.after >= SEQ_MAX:
        return []
    last = SEQ_MAX if span.until is None else min(span.until, SEQ_MAX)
    statement = directed("read_records" if span.bodies else "read_heads", newest_first=span.newest_first)
    values = (base + max(span.after, 0) + 1, base + last, -1 if span.limit is None else span.limit)
    return [_stored(*found) for found in cursor.execute(statement, values)]


def read_picked(cursor: Cursor, run_id: str, seqs: Sequence[int]) -> list[Stored]:
    """The records with these seqs."""
    base = _base(cursor, run_id)
    if base is None:
        return []
    keys = [(base + seq,) for seq in sorted(set(seqs)) if 0 < seq <= SEQ_MAX]
    return [_stored(*found) for found in cursor.executemany(sql("read_record"), keys)]


def read_one(cursor: Cursor, run_id: str, seq: int) -> list[Stored]:
    """The record with this seq, in one statement."""
    if not 0 < seq <= SEQ_MAX:
        return []
    return [_stored(*found) for found in cursor.execute(sql("pick_record"), (run_id, seq))]


def read_effects(cursor: Cursor, run_id: str, keys: Sequence[bytes] | None) -> list[LedgerEntry]:
    """What the ledger index has, in order of beginning."""
    run: int | None = cursor.execute(sql("read_key"), (run_id,)).get
    if run is None:
        return []
    if keys is None:
        found = cursor.execute(sql("read_effects"), (run,))
    else:
        found = cursor.executemany(sql("read_effect"), [(run, key) for key in dict.fromkeys(keys)])
    return sorted((LedgerEntry(*one) for one in found), key=lambda one: one.began)


def read_effect(cursor: Cursor, run_id: str, key: bytes) -> list[LedgerEntry]:
    """What it has under one key, in one statement."""
    return [LedgerEntry(*one) for one in cursor.execute(sql("find_effect"), (run_id, key))]


def read_listed(cursor: Cursor, key: int, stands: Stands) -> Row:
    """A run in a list."""
    found = cursor.execute(sql("read_listed"), (key,)).fetchone()
    assert found is not None, "it was found in this transaction"
    run_id, seq, digest, sealed, until_us = found
    fold = read_row(run_id, seq, digest, sealed)
    return Row(run_id, fold, holder_of(fold, until_us, stands))


def weigh(cursor: Cursor, path: str, run_id: str | None) -> Weight:
    """What a run weighs, or the whole store with its log."""
    if run_id is None:
        runs = cursor.execute(sql("count_runs")).get
        [(records, head_bytes, body_bytes)] = cursor.execute(sql("weigh_records")).fetchall()
        return Weight(runs, records, head_bytes, body_bytes, _file_bytes(path))
    base = _base(cursor, run_id)
    if base is None:
        return Weight(0, 0, 0, 0, 0)
    [(records, head_bytes, body_bytes)] = cursor.execute(sql("weigh_run"), (base, base + SEQ_MAX)).fetchall()
    return Weight(1, records, head_bytes, body_bytes, 0)


def _file_bytes(path: str) -> int:
    files = (Path(path), Path(f"{path}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _base(cursor: Cursor, run_id: str) -> int | None:
    """What a run's seqs are added to; None when there is no such run."""
    key: int | None = cursor.execute(sql("read_key"), (run_id,)).get
    return None if key is None else key << SEQ_BITS


def _stored(key: int, head: bytes, body: bytes | None) -> Stored:
    return Stored(key & SEQ_MAX, head[DIGEST_BYTES:], head[:DIGEST_BYTES], body)
