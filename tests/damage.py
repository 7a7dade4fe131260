"""Damage to stored bytes, done behind a store's back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from keepstep.store.directory.lines import records_in, renewed_line
from keepstep.store.directory.names import file_name


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


def _flipped(body: bytes | None) -> bytes:
    assert body, "only what has a body can be damaged"
    return body[:-1] + bytes([body[-1] ^ 1])
