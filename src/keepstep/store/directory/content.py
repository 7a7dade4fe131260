"""What a transaction makes of a run's file: one line more, or the whole file with other bodies."""

from __future__ import annotations

from collections.abc import Sequence

from keepstep.store.base import Append
from keepstep.store.directory.lines import commit_line, renewed_line
from keepstep.store.directory.run_file import RunFile


def line_of(run_id: str, batch: int, appends: Sequence[Append]) -> bytes:
    """One line for all that a transaction adds to a run: it is there as a whole, or not at all."""
    records = [record for append in appends for record in append.records]
    ledger = {entry.key: entry for append in appends for entry in append.ledger}
    return commit_line(run_id, batch, records, appends[-1].row, ledger.values())


def other_bodies(appends: Sequence[Append]) -> dict[int, bytes | None]:
    """By seq, what becomes of the bodies that are dropped (None) or stored anew; only what is there by then."""
    bodies: dict[int, bytes | None] = {}
    for append in appends:
        for first, last in append.dropped:
            bodies.update(dict.fromkeys(range(first, min(last, append.row.seq) + 1)))
        bodies.update((seq, body) for seq, body in append.renewed if seq <= append.row.seq)
    return bodies


def rewritten(file: RunFile, line: bytes, bodies: dict[int, bytes | None]) -> bytes:
    """The whole file with other bodies, and a new line."""
    lines = [
        text + b"\n" if bodies.keys().isdisjoint(range(span.first, span.last + 1)) else renewed_line(text, bodies)
        for span, text in file.read_lines(file.spans)
    ]
    return b"".join((*lines, renewed_line(line[:-1], bodies)))
