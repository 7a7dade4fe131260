"""What a batch writes, as statements that each take all of its runs at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from keepstep.log.fold import Fold
from keepstep.store.base import Append
from keepstep.store.postgres.port import Step
from keepstep.store.postgres.statements import Statements, channel
from keepstep.store.postgres.tags import indexed
from keepstep.store.postgres.texts import to_bytes
from keepstep.store.sealed_rows import seal_row

Appends = Mapping[str, Sequence[Append]]
"""By run; a run's appends follow one another."""


def lock_key(schema: str, name: str) -> int:
    """The number by which something in a schema is locked that has no row."""
    digest = blake2b(f"{schema}\0{name}".encode(), digest_size=8, person=b"keepstep lock").digest()
    return int.from_bytes(digest, "big", signed=True)


def pulse_key(schema: str) -> int:
    """The number of the lock that is held between drawing a number of a change and showing the change."""
    return lock_key(schema, "pulse") ^ 1


def quiet_append(sql: Statements, appends: Sequence[Append], now_us: int | None) -> Step:
    """The one statement for appends that move nothing: it writes those that fit, and names them."""
    if len(appends) == len(appends[0].records) == 1 and not appends[0].ledger:
        return _single_append(sql, appends[0], now_us)
    records = [(to_bytes(append.run_id), one) for append in appends for one in append.records]
    effects = _last_of((to_bytes(append.run_id), one) for append in appends for one in append.ledger)
    return Step(
        sql("append"),
        {
            "ids": [to_bytes(append.run_id) for append in appends],
            "after_seqs": [append.after_seq for append in appends],
            "after_digests": [append.after_digest for append in appends],
            "seqs": [append.row.seq for append in appends],
            "digests": [append.row.digest for append in appends],
            "rows": [seal_row(append.row) for append in appends],
            "record_runs": [run for run, _ in records],
            "record_seqs": [one.seq for _, one in records],
            "heads": [one.digest + one.head for _, one in records],
            "bodies": [one.body for _, one in records],
            "effect_runs": [run for run, _ in effects],
            "effect_keys": [one.key for _, one in effects],
            "began": [one.began for _, one in effects],
            "ended": [one.ended for _, one in effects],
            "how": [one.how for _, one in effects],
            "pulse": pulse_key(sql.schema),
            "now_us": now_us,
        },
    )


def _single_append(sql: Statements, append: Append, now_us: int | None) -> Step:
    [record] = append.records
    return Step(
        sql("append_one"),
        {
            "id": to_bytes(append.run_id),
            "after_seq": append.after_seq,
            "after_digest": append.after_digest,
            "seq": append.row.seq,
            "digest": append.row.digest,
            "row": seal_row(append.row),
            "head": record.digest + record.head,
            "body": record.body,
            "pulse": pulse_key(sql.schema),
            "now_us": now_us,
        },
    )


def is_quiet(append: Append) -> bool:
    """Whether the one statement can write it."""
    return append.after_seq > 0 and not (append.moved or append.dropped or append.renewed)


def write(sql: Statements, appends: Appends, before: Mapping[str, Fold | None]) -> list[Step]:
    """The statements that write what was planned, for runs that are locked."""
    every = [(to_bytes(run_id), one) for run_id, some in appends.items() for one in some]
    new = {run_id: some for run_id, some in appends.items() if before[run_id] is None}
    old = {run_id: some for run_id, some in appends.items() if before[run_id] is not None}
    steps: list[Step] = []
    if old:
        steps.append(Step(sql("advance_runs"), _moving(old)))
    if new:
        steps.append(Step(sql("create_runs"), _moving(new) | _fixed(new)))
        steps.append(Step(sql("unbury_runs"), {"ids": [to_bytes(run_id) for run_id in new]}))
    return [
        *steps,
        *_logs(sql, every),
        *_bodies(sql, every),
        *_tags(sql, appends, before),
        *beat(sql, is_told=_is_told(every)),
    ]


def _moving(appends: Appends) -> dict[str, Any]:
    """The columns that change, of each run as it will be."""
    rows = {run_id: _last(some) for run_id, some in appends.items()}
    return {
        "ids": [to_bytes(run_id) for run_id in rows],
        "seqs": [row.seq for row in rows.values()],
        "digests": [row.digest for row in rows.values()],
        "rows": [seal_row(row) for row in rows.values()],
        "statuses": [row.status for row in rows.values()],
        "changed_us": [row.changed_us for row in rows.values()],
        "due_us": [row.due_us for row in rows.values()],
        "asking_us": [row.asking_us for row in rows.values()],
        "owners": [_bytes(row.owner) for row in rows.values()],
    }


def _fixed(appends: Appends) -> dict[str, Any]:
    """The columns that never change."""
    rows = [_last(some) for some in appends.values()]
    return {
        "workflows": [to_bytes(row.workflow) for row in rows],
        "created_us": [row.created_us for row in rows],
        "parents": [_bytes(row.parent_run) for row in rows],
    }


def _logs(sql: Statements, every: Sequence[tuple[bytes, Append]]) -> list[Step]:
    """Records, and what they change in the ledger."""
    records = [(run, one) for run, append in every for one in append.records]
    effects = _last_of((run, one) for run, append in every for one in append.ledger)
    steps: list[Step] = []
    if records:
        values = {
            "runs": [run for run, _ in records],
            "seqs": [one.seq for _, one in records],
            "heads": [one.digest + one.head for _, one in records],
            "bodies": [one.body for _, one in records],
        }
        steps.append(Step(sql("insert_records"), values))
    if effects:
        values = {
            "runs": [run for run, _ in effects],
            "keys": [one.key for _, one in effects],
            "began": [one.began for _, one in effects],
            "ended": [one.ended for _, one in effects],
            "how": [one.how for _, one in effects],
        }
        steps.append(Step(sql("put_effects"), values))
    return steps


def _bodies(sql: Statements, every: Sequence[tuple[bytes, Append]]) -> list[Step]:
    """What happens to bodies written before, in order. A range ends where the log ended when it was named."""
    steps: list[Step] = []
    for run, append in every:
        for first, last in append.dropped:
            steps.append(Step(sql("drop_bodies"), {"id": run, "first": first, "last": min(last, append.row.seq)}))
        for seq, body in append.renewed:
            steps.append(Step(sql("renew_body"), {"id": run, "seq": seq, "body": body}))
    return steps


def _tags(sql: Statements, appends: Appends, before: Mapping[str, Fold | None]) -> list[Step]:
    """Bring what lists are searched by in line with the rows of those that have tags, or had some."""
    rows = {run_id: _last(some) for run_id, some in appends.items()}
    tagged = {run_id: row for run_id, row in rows.items() if row.tags or ((old := before[run_id]) and old.tags)}
    if not tagged:
        return []
    lines = [(to_bytes(run_id), row, *one) for run_id, row in tagged.items() for one in indexed(row.tags).items()]
    runs, names = [run for run, *_ in lines], [name for _, _, name, _ in lines]
    steps = [Step(sql("erase_tags"), {"ids": [to_bytes(one) for one in tagged], "runs": runs, "names": names})]
    if lines:
        values = {
            "runs": runs,
            "names": names,
            "values": [value for *_, value in lines],
            "created_us": [row.created_us for _, row, *_ in lines],
            "changed_us": [row.changed_us for _, row, *_ in lines],
        }
        steps.append(Step(sql("put_tags"), values))
    return steps


def beat(sql: Statements, *, is_told: bool) -> list[Step]:
    """Let those who wait for a change know, by the number, and at once when they are told.

    That is not done for every change: the server writes transactions that tell one after another.
    """
    steps = [Step(sql("beat"), {"pulse": pulse_key(sql.schema)})]
    return [*steps, Step(sql("notify"), {"channel": channel(sql.schema)})] if is_told else steps


def erase(sql: Statements, run_id: str, row: Fold) -> list[Step]:
    """Take away everything of a run, and leave its tombstone."""
    run = {"id": to_bytes(run_id)}
    parts = ("erase_records", "erase_ledger", "erase_all_tags", "erase_run")
    grave = {**run, "incarnation": row.incarnation, "epoch": row.epoch}
    return [*(Step(sql(one), run) for one in parts), Step(sql("bury_run"), grave), *beat(sql, is_told=True)]


def _last(appends: Sequence[Append]) -> Fold:
    row = appends[-1].row
    assert isinstance(row, Fold), "what is planned is frozen"
    return row


def _last_of(effects: Iterable[tuple[bytes, Any]]) -> list[tuple[bytes, Any]]:
    """Each line of a ledger once, as the last one leaves it: a statement cannot put one twice."""
    return list({(run, one.key): (run, one) for run, one in effects}.values())


def _is_told(every: Sequence[tuple[bytes, Append]]) -> bool:
    """Whether a run has come free, or has ended. Nobody waits for another one to be claimed."""
    return any(append.moved and append.row.status != "running" for _, append in every)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else to_bytes(text)
