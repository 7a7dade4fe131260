"""What a batch writes, entry by entry, inside one transaction.

An entry is decided completely before its first row is written, so a refused one leaves nothing to undo. An append by
a run's holder asks nothing first: the update itself finds out whether the log still ends where the writer thinks.
"""

from __future__ import annotations

from typing import Any

import apsw

from keepstep.errors import Damaged, KeepstepError, TooLarge
from keepstep.log.fold import Fold, decode_fold
from keepstep.store.base import Append, Committed, Decision, Entry, Outcome, Refused, View
from keepstep.store.plan import obstacle_to
from keepstep.store.sealed_rows import CHECK_BYTES, seal_row
from keepstep.store.sqlite.driver import Cursor
from keepstep.store.sqlite.statements import sql
from keepstep.store.sqlite.tags import index_tags
from keepstep.store.sqlite.views import Stands, read_view

SEQ_BITS = 32
SEQ_MAX = (1 << SEQ_BITS) - 1
"""A record's key is (run key << 32 | seq), in SQLite's 64 bits with their sign."""


class Writing:
    """One transaction that writes."""

    def __init__(self, cursor: Cursor, stands: Stands, now_us: int) -> None:
        self._cursor = cursor
        self._stands = stands
        self.now_us = now_us

    def view(self, run_id: str) -> View:
        """The run after the entries taken so far."""
        return read_view(self._cursor, run_id, self._stands, self.now_us)

    def take(self, entry: Entry) -> Outcome:
        """Write one entry, or say why not."""
        if isinstance(entry, Append):
            return self._append(entry)
        return self._decide(entry)

    def _decide(self, entry: Decision) -> Outcome:
        try:
            append = entry.decide(self.view(entry.run_id))
        except KeepstepError as error:
            return Refused(error)
        if append is None:
            return Committed(None, self.now_us)
        assert append.run_id == entry.run_id, "a decision must write to the run that it was shown"
        return self._append(append)

    def _append(self, append: Append) -> Outcome:
        assert not append.records or append.records[-1].seq == append.row.seq, "the row must be the log's"
        if append.row.seq > SEQ_MAX:
            return Refused(TooLarge(f"Run {append.run_id!r} has {SEQ_MAX} records, and can have no more. Fork it."))
        key = self._advance(append) if append.after_seq else None
        if key is None:
            outcome = self._create_or_refuse(append)
            if not isinstance(outcome, int):
                return outcome
            key = outcome
        self._fill(key << SEQ_BITS, append)
        for one in append.ledger:
            self._cursor.execute(sql("put_effect"), (key, *one))
        return Committed(append, self.now_us)

    def _advance(self, append: Append) -> int | None:
        """Move the run's row on; None when the log does not end there."""
        row, sealed = append.row, seal_row(append.row)
        known = (row.seq, row.digest, sealed, append.run_id, append.after_seq, append.after_digest)
        if not append.moved:
            return self._cursor.execute(sql("append"), known).get
        frozen = decode_fold(sealed[CHECK_BYTES:])
        found = self._cursor.execute(sql("append_moved"), (*known, *_moving(frozen))).fetchall()
        if not found:
            return None
        [(key, is_tagged)] = found
        if is_tagged or frozen.tags:
            index_tags(self._cursor, key, append.run_id, frozen)
        return key

    def _create_or_refuse(self, append: Append) -> int | Outcome:
        """The key of a new run; or what stands against the append."""
        try:
            obstacle = obstacle_to(append, self.view(append.run_id))
        except Damaged as error:
            return Refused(error)
        if obstacle is not None:
            return obstacle
        if append.after_seq:
            return Refused(Damaged(f"The row of run {append.run_id!r} and its columns differ. Restore a backup."))
        return self._create(append)

    def _create(self, append: Append) -> int | Outcome:
        row, sealed = append.row, seal_row(append.row)
        frozen = decode_fold(sealed[CHECK_BYTES:])
        try:
            values = (row.seq, row.digest, sealed, append.run_id, *_moving(frozen))
            fixed = (row.workflow, row.created_us, row.parent_run)
            key: int = self._cursor.execute(sql("create_run"), (*values, *fixed)).get
        except apsw.ConstraintError:
            return Refused(TooLarge("The store has had two thousand million runs, and can have no more. Open another."))
        self._cursor.execute(sql("unbury_run"), (append.run_id,))
        if frozen.tags:
            index_tags(self._cursor, key, append.run_id, frozen)
        return key

    def _fill(self, base: int, append: Append) -> None:
        """Write the records, and what happens to bodies written before."""
        cursor, insert = self._cursor, sql("insert_record")
        if len(append.records) == 1:
            one = append.records[0]
            cursor.execute(insert, (base | one.seq, one.digest + one.head, one.body))
        elif append.records:
            cursor.executemany(insert, [(base | one.seq, one.digest + one.head, one.body) for one in append.records])
        for first, last in append.dropped:
            cursor.execute(sql("drop_bodies"), (base | first, base | min(last, SEQ_MAX)))
        for seq, body in append.renewed:
            cursor.execute(sql("renew_body"), (base | seq, body))


def _moving(row: Fold) -> tuple[Any, ...]:
    """The columns that lists are searched by and that change, in the order in which statements take them."""
    return row.status, row.changed_us, row.due_us, row.asking_us, row.owner


def erase(cursor: Cursor, view: View) -> None:
    """Take away everything of a run, and leave its tombstone."""
    assert view.row is not None
    key: int = cursor.execute(sql("read_key"), (view.run_id,)).get
    cursor.execute(sql("erase_records"), (key << SEQ_BITS, key << SEQ_BITS | SEQ_MAX))
    cursor.execute(sql("erase_ledger"), (key,))
    cursor.execute(sql("erase_tags"), (key,))
    cursor.execute(sql("erase_run"), (key,))
    cursor.execute(sql("bury_run"), (view.run_id, view.row.incarnation, view.row.epoch))
