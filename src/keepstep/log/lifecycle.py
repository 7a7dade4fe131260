"""Which record may follow in which status, and what status it leads to: the whole life of a run, in one table.

A cell says what a record of the row's kind does to a run in the column's status:

    -       refused
    =       the status stays
    name    the run goes there
    rests   where a released run goes: `ready`, or, if it gave up its claim to wait, `paused` or `sleeping`
    wakes   `ready` if it was what the run waited for, otherwise the status stays

A `*` behind a cell: while the run is running, anybody may write it; without the star only the holder may.
"""

from __future__ import annotations

from typing import Literal

Status = Literal["ready", "running", "paused", "sleeping", "failed", "finished", "cancelled"]
STATUSES: tuple[Status, ...] = ("ready", "running", "paused", "sleeping", "failed", "finished", "cancelled")
ENDED: frozenset[str] = frozenset(("failed", "finished", "cancelled"))
ABSENT = "absent"

TABLE = """
kind              absent  ready     running    paused     sleeping   failed     finished  cancelled
opened            ready   -         -          -          -          -          -         -
saved             -       =         =          =          =          -          -         -
finished          -       -         finished   -          -          -          -         -
failed            -       -         failed     -          -          -          -         -
cancel_requested  -       =         =*         =          =          -          -         -
cancelled         -       cancelled cancelled  cancelled  cancelled  cancelled  -         -
reopened          -       -         -          -          -          ready      ready     ready
rolled_back       -       -         =          -          -          -          -         -
tagged            -       =         =*         =          =          =          =         =
noted             -       =         =*         =          =          =          =         =
pruned            -       =         =*         =          =          =          =         =
claimed           -       running   =*         running    running    -          -         -
released          -       -         rests*     -          -          -          -         -
began             -       =         =          =          =          -          -         -
returned          -       =         =          =          =          -          -         -
raised            -       -         =          -          -          -          -         -
doubted           -       -         =          -          -          -          -         -
settled           -       =         =*         wakes      =          =          =         =
witnessed         -       =         =*         =          =          =          =         =
undo_began        -       -         =          -          -          -          -         -
undone            -       -         =          -          -          -          -         -
undo_failed       -       -         =          -          -          -          -         -
inherited         -       =         -          -          -          -          -         -
asked             -       paused    =          =          paused     -          -         -
answered          -       =         =*         wakes      =          =          -         -
expired           -       =         =*         wakes      =          -          -         -
slept             -       -         =          -          -          -          -         -
sent              -       =         =*         wakes      wakes      =          -         -
took              -       -         =          -          -          -          -         -
"""


def _read(table: str) -> tuple[dict[tuple[str, str], str], frozenset[str]]:
    header, *rows = (line.split() for line in table.strip().splitlines())
    cells: dict[tuple[str, str], str] = {}
    anybody: set[str] = set()
    for kind, *row in rows:
        for status, cell in zip(header[1:], row, strict=True):
            if cell.endswith("*"):
                anybody.add(kind)
            if cell != "-":
                cells[kind, status] = cell.rstrip("*")
    return cells, frozenset(anybody)


_CELLS, BY_ANYBODY = _read(TABLE)


def leads_to(kind: str, status: str) -> str | None:
    """The cell of the table for this record in this status; None when it is refused."""
    return _CELLS.get((kind, status))


def allowed_in(kind: str) -> list[str]:
    """The statuses in which a record of this kind may follow."""
    return [status for status in (ABSENT, *STATUSES) if (kind, status) in _CELLS]
