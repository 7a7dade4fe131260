"""Damage to stored bytes, done behind a store's back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, LiteralString, Self, cast

import apsw
import msgspec
import psycopg

from keepstep.log.chain import DIGEST_BYTES, Stored
from keepstep.log.fold import Fold, encode_fold
from keepstep.store.directory.lines import RecordLine, _sealed, outline, records_in, renewed_line
from keepstep.store.directory.names import file_name
from keepstep.store.sealed_rows import read_row, seal_row

Change = Callable[[dict[int, Stored]], dict[int, Stored]]
"""What becomes of a run's records, by seq: changed, missing, or in another place."""


def damage_memory(base: Any, run_id: str, seq: int) -> None:
    """One byte of a body is another."""
    records = base._content.runs[run_id].records
    records[seq] = records[seq]._replace(body=_flipped(records[seq].body))


def damage_directory(folder: Path, run_id: str, seq: int) -> None:
    """The same, in a line whose own check is right."""
    path = folder / "runs" / file_name(run_id)
    changed: list[bytes] = []
    for line in path.read_bytes().splitlines():
        bodies: dict[int, bytes | None] = {one.seq: _flipped(one.body) for one in records_in(line) if one.seq == seq}
        changed.append(renewed_line(line, bodies) if bodies else line + b"\n")
    path.write_bytes(b"".join(changed))


def damage_sqlite(file: Path, run_id: str, seq: int) -> None:
    """The same, in the row of a record."""
    connection = apsw.Connection(str(file))
    try:
        (run_key,) = next(connection.execute("SELECT key FROM runs WHERE id = ?", (run_id,)))
        key = run_key << 32 | seq
        (body,) = next(connection.execute("SELECT body FROM records WHERE key = ?", (key,)))
        connection.execute("UPDATE records SET body = ? WHERE key = ?", (_flipped(body), key))
    finally:
        connection.close()


def damage_postgres(url: str, run_id: str, seq: int) -> None:
    """The same, in a database."""
    with Tables(url) as tables:
        [(body,)] = tables.do("SELECT body FROM {}.records WHERE run = %s AND seq = %s", run_id.encode(), seq)
        tables.do("UPDATE {}.records SET body = %s WHERE run = %s AND seq = %s", _flipped(body), run_id.encode(), seq)


class Tables:
    """The tables of a store in PostgreSQL, behind its back."""

    def __init__(self, url: str) -> None:
        base, _, options = url.rpartition("schema=")
        self._schema = options.partition("&")[0]
        self._connection = psycopg.connect(base.rstrip("?&"), autocommit=True)

    def do(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Carry out a statement, in which {} stands for the schema."""
        text = cast("LiteralString", statement.replace("{}", f'"{self._schema}"'))
        cursor = self._connection.execute(text, values)
        return cursor.fetchall() if cursor.description is not None else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _flipped(body: bytes | None) -> bytes:
    assert body, "only what has a body can be damaged"
    return body[:-1] + bytes([body[-1] ^ 1])


# --- anything that can become of records -----------------------------------------------------------------------------


def rewrite(place: Any, store: Any, run_id: str, change: Change) -> None:
    """Put other records in the place of a run's, in a store of any kind."""
    if place.kind == "memory":
        rewrite_memory(store._session._beating, run_id, change)
    elif place.kind == "dir":
        rewrite_directory(place.path, run_id, change)
    elif place.kind == "postgres":
        rewrite_postgres(place.url, run_id, change)
    else:
        rewrite_sqlite(place.path, run_id, change)


def rewrite_memory(base: Any, run_id: str, change: Change) -> None:
    """Put other records in the place of a run's."""
    run = base._content.runs[run_id]
    changed = change(dict(run.records))
    run.records = {seq: one._replace(seq=seq) for seq, one in changed.items()}


def rewrite_directory(folder: Path, run_id: str, change: Change) -> None:
    """The same, in lines whose own checks are right."""
    path = folder / "runs" / file_name(run_id)
    lines = path.read_bytes().splitlines()
    changed = change({one.seq: one for line in lines for one in records_in(line)})
    kept: list[bytes] = []
    for line in lines:
        records = [changed[one.seq]._replace(seq=one.seq) for one in records_in(line) if one.seq in changed]
        content = msgspec.json.decode(line)
        del content["check"]
        # The head is given as its bytes alone: it may be one no more.
        content["records"] = [RecordLine(one.seq, {}, one.digest.hex(), one.body, one.head) for one in records]
        kept += [_sealed(content)] if records else []
    path.write_bytes(b"".join(kept))


def rewrite_sqlite(file: Path, run_id: str, change: Change) -> None:
    """The same, in the rows of the records."""
    connection: Any = apsw.Connection(str(file))
    try:
        (run_key,) = next(connection.execute("SELECT key FROM runs WHERE id = ?", (run_id,)))
        found = connection.execute("SELECT key, head, body FROM records WHERE key >> 32 = ?", (run_key,)).fetchall()
        before = {key & 0xFFFFFFFF: _from_columns(key & 0xFFFFFFFF, head, body) for key, head, body in found}
        changed = change(dict(before))
        with connection:
            for seq in before.keys() - changed.keys():
                connection.execute("DELETE FROM records WHERE key = ?", (run_key << 32 | seq,))
            for seq, one in changed.items():
                if before.get(seq) != one:
                    values = (run_key << 32 | seq, one.digest + one.head, one.body)
                    connection.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", values)
    finally:
        connection.close()


def rewrite_postgres(url: str, run_id: str, change: Change) -> None:
    """The same, in the rows of a database."""
    run = run_id.encode()
    with Tables(url) as tables:
        found = tables.do("SELECT seq, head, body FROM {}.records WHERE run = %s", run)
        changed = change({seq: _from_columns(seq, head, body) for seq, head, body in found})
        tables.do("DELETE FROM {}.records WHERE run = %s", run)
        for seq, one in changed.items():
            tables.do("INSERT INTO {}.records VALUES (%s, %s, %s, %s)", run, seq, one.digest + one.head, one.body)


def _from_columns(seq: int, head: bytes, body: bytes | None) -> Stored:
    return Stored(seq, head[DIGEST_BYTES:], head[:DIGEST_BYTES], body)


# --- the row ---------------------------------------------------------------------------------------------------------


def rewrite_row(place: Any, store: Any, run_id: str, change: Callable[[Fold], Fold]) -> None:
    """Put another row in the place of a run's, in a store of any kind; whatever checks it has of its own are right."""
    if place.kind == "memory":
        rewrite_row_memory(store._session._beating, run_id, change)
    elif place.kind == "dir":
        rewrite_row_directory(place.path, run_id, change)
    elif place.kind == "postgres":
        rewrite_row_postgres(place.url, run_id, change)
    else:
        rewrite_row_sqlite(place.path, run_id, change)


def rewrite_row_memory(base: Any, run_id: str, change: Callable[[Fold], Fold]) -> None:
    """Put another row in the place of a run's."""
    run = base._content.runs[run_id]
    run.row = change(run.row)


def rewrite_row_directory(folder: Path, run_id: str, change: Callable[[Fold], Fold]) -> None:
    """The same, in a line whose own check is right."""
    path = folder / "runs" / file_name(run_id)
    *lines, last = path.read_bytes().splitlines()
    content = msgspec.json.decode(last)
    del content["check"]
    content["row_raw"] = encode_fold(change(outline(last).fold()))
    path.write_bytes(b"".join(line + b"\n" for line in lines) + _sealed(content))


def rewrite_row_sqlite(file: Path, run_id: str, change: Callable[[Fold], Fold]) -> None:
    """The same, with a checksum and columns that are right."""
    connection: Any = apsw.Connection(str(file))
    try:
        found = connection.execute("SELECT row, seq, digest FROM runs WHERE id = ?", (run_id,)).fetchone()
        assert found is not None
        sealed, seq, digest = found
        row = change(read_row(run_id, seq, digest, sealed))
        values = (seal_row(row), row.seq, row.digest, run_id)
        connection.execute("UPDATE runs SET row = ?, seq = ?, digest = ? WHERE id = ?", values)
    finally:
        connection.close()


def rewrite_row_postgres(url: str, run_id: str, change: Callable[[Fold], Fold]) -> None:
    """The same, in the rows of a database."""
    with Tables(url) as tables:
        [(sealed, seq, digest)] = tables.do("SELECT row, seq, digest FROM {}.runs WHERE id = %s", run_id.encode())
        row = change(read_row(run_id, seq, digest, sealed))
        values = (seal_row(row), row.seq, row.digest, run_id.encode())
        tables.do("UPDATE {}.runs SET row = %s, seq = %s, digest = %s WHERE id = %s", *values)


def change_row_bytes(file: Path, run_id: str, change: Callable[[bytes], bytes]) -> None:
    """The bytes of a row in a SQLite store become others."""
    connection: Any = apsw.Connection(str(file))
    try:
        (before,) = connection.execute("SELECT row FROM runs WHERE id = ?", (run_id,)).fetchone()
        connection.execute("UPDATE runs SET row = ? WHERE id = ?", (change(before), run_id))
    finally:
        connection.close()
