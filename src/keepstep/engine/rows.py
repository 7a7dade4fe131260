"""Looking at runs without claiming them: one, lists of them, what a worker would take, ids near a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import asdict

from keepstep.engine.bodies import record_at, value_at
from keepstep.engine.checkpoints import check_names, load
from keepstep.engine.context import Engine, Limits
from keepstep.engine.looks import HolderLook, Look, PageOf, ParentLook, RunHead
from keepstep.engine.moments import moment
from keepstep.engine.shape import Shape
from keepstep.errors import BadInput, NoSuchRun, shown
from keepstep.log.fold import Fields, Fold
from keepstep.log.lifecycle import STATUSES
from keepstep.log.records import TagValue
from keepstep.store.base import Holder, Order, Query, View

PAGE_MAX = 1000
"""Rows of one page; a list is read page by page."""
NEAR_MAX = 3
NEAR_SEARCHED = 200


def check_id(limits: Limits, run_id: Any) -> None:
    """Refuse what cannot be the id of a run."""
    if not isinstance(run_id, str):
        raise BadInput(f"A run's id is text, not {shown(run_id)}.")
    try:
        size = len(run_id.encode())
    except UnicodeEncodeError:
        raise BadInput(f"The run id {shown(run_id)} is not valid text (a lone surrogate).") from None
    if not 1 <= size <= limits.id_bytes:
        raise BadInput(f"A run's id has 1 to {limits.id_bytes} bytes; this one has {size}.")


async def find(engine: Engine, run_id: str) -> tuple[View, Fold]:
    """The row of a run that must be there."""
    check_id(engine.limits, run_id)
    view = await engine.store.view(run_id)
    if view.row is None:
        raise NoSuchRun(run_id, await near(engine, run_id))
    return view, view.row


async def look(engine: Engine, shape: Shape, run_id: str) -> Look:
    """A run with its state, result, error and last note."""
    view, row = await find(engine, run_id)
    state = None
    if row.saved:
        state = shape.read(run_id, (await load(engine, run_id, row.saved)).parts, row.version)
    result = await value_at(engine, run_id, row.ended) if row.status == "finished" else None
    error = await value_at(engine, run_id, row.ended) if row.status == "failed" else None
    note = await value_at(engine, run_id, row.note)
    cancel = await request(engine, run_id, row) if row.cancel else None
    head = run_head(run_id, row, view.holder)
    return Look(**asdict(head), state=state, result=result, error=error, note=note, cancel=cancel)


async def request(engine: Engine, run_id: str, row: Fields) -> Mapping[str, Any]:
    """Who asked for a run to be cancelled, why, and when."""
    record, told = await record_at(engine, run_id, row.cancel)
    return {"reason": None, "by": None, **(told or {}), "at": moment(record.at_us)}


async def result(engine: Engine, run_id: str) -> Any:
    """What a finished run returned."""
    row = (await engine.store.view(run_id)).row
    return await value_at(engine, run_id, row.ended) if row is not None and row.status == "finished" else None


async def near(engine: Engine, run_id: str) -> list[str]:
    """Ids that somebody who typed this one may have meant."""
    from difflib import get_close_matches  # only for this error, and slow to import

    start = run_id[: max(1, len(run_id) // 2)]
    page = await engine.store.rows(Query(starts_with=start), None, NEAR_SEARCHED)
    ids = [row.run_id for row in page.rows]
    if not ids:
        page = await engine.store.rows(Query(), None, NEAR_SEARCHED)
        ids = [row.run_id for row in page.rows]
    return get_close_matches(run_id, ids, NEAR_MAX, 0.6)


async def runs(
    engine: Engine,
    *,
    workflow: str | None = None,
    status: str | Sequence[str] | None = None,
    tags: Mapping[str, TagValue] | None = None,
    parent: str | None = None,
    starts_with: str = "",
    order: Order = "created",
    newest_first: bool = True,
    limit: int = 50,
    cursor: str | None = None,
    due: bool = False,
) -> PageOf[RunHead]:
    """A page of runs."""
    check_names(engine.limits, workflow=workflow)
    check_page(limit)
    _check_list(order, newest_first, cursor)
    query = Query(
        workflow,
        _wanted(status),
        _sought(engine.limits, tags),
        parent,
        _start(starts_with),
        order,
        newest_first,
        due,
    )
    page = await engine.store.rows(query, cursor, limit)
    # A run whose rollback was cut off is nobody's to carry on: the rollback has to come to its end first.
    found = [row for row in page.rows if not (due and row.fold.undoing)]
    return PageOf([run_head(row.run_id, row.fold, row.holder) for row in found], page.next)


def _check_list(order: Any, newest_first: Any, cursor: Any) -> None:
    if order not in ("created", "changed"):
        raise BadInput(f"order= is {shown(order)}; give 'created' or 'changed'.")
    check_direction(newest_first)
    check_cursor(cursor)


def _wanted(status: Any) -> tuple[str, ...]:
    wanted = [status] if isinstance(status, str) or not isinstance(status, Iterable) else list(cast(Any, status))
    for one in wanted if status is not None else ():
        if one not in STATUSES:
            raise BadInput(f"status= is {shown(one)}; give one of {', '.join(STATUSES)}.")
    return tuple(wanted) if status is not None else ()


def _sought(limits: Limits, tags: Mapping[str, TagValue] | None) -> Mapping[str, TagValue]:
    sought = check_tags(limits, {} if tags is None else tags)
    for name, value in sought.items():
        if value is None:
            raise BadInput(f"Tag {shown(name)} is None, which no run has; give the value to search for.")
    return cast("dict[str, TagValue]", sought)


def _start(text: Any) -> str:
    try:
        text.encode()
    except (AttributeError, UnicodeEncodeError):
        raise BadInput(f"starts_with= is {shown(text)}; give text.") from None
    return text


def check_cursor(cursor: Any) -> None:
    """Refuse what is no text; whether it is a cursor, only its store can tell."""
    if cursor is not None and not isinstance(cursor, str):
        raise BadInput(f"cursor= is {shown(cursor)}; pass the .next of the page before.")


def check_direction(newest_first: Any) -> None:
    """Refuse what is neither direction."""
    check_truth(newest_first=newest_first)


def check_truth(**given: Any) -> None:
    """Refuse what is neither True nor False."""
    for what, value in given.items():
        if not isinstance(value, bool):
            raise BadInput(f"{what}= is {shown(value)}; give True or False.")


def check_page(limit: Any) -> None:
    """Refuse a page's size that makes no sense."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= PAGE_MAX:
        raise BadInput(f"limit= is {shown(limit)}; give 1 to {PAGE_MAX}, and pass page.next as cursor= for more.")


def check_tags(limits: Limits, tags: Mapping[str, TagValue | None]) -> dict[str, TagValue | None]:
    """Refuse tags that are too many, too long, or of a type that cannot be searched for."""
    if not isinstance(tags, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"Tags are given by name, not as {shown(tags)}.")
    if len(tags) > limits.tags:
        raise BadInput(f"{len(tags)} tags are too many; a run has at most {limits.tags}.")
    for name, value in tags.items():
        check_names(limits, tag=name)
        if value is not None and type(value) not in (str, int, float, bool):
            raise BadInput(
                f"Tag {shown(name)} is a {type(value).__name__}; tags are text, numbers, booleans (None removes)."
            )
        if isinstance(value, str) and value:
            check_names(limits, **{f"tag {name}": value})
        if value != value:  # noqa: PLR0124 - only nan differs from itself
            raise BadInput(f"Tag {shown(name)} is nan, which is equal to nothing and never found; leave it out.")
        if type(value) is int and not -(1 << 63) <= value < 1 << 63:
            raise BadInput(f"Tag {shown(name)} is {shown(value)}, which is beyond 64 bits; store it as text.")
    return dict(tags)


def run_head(run_id: str, row: Fold, holder: Holder | None) -> RunHead:
    """A row as people read it."""
    return RunHead(
        run_id=run_id,
        workflow=row.workflow,
        status=row.status,
        step=row.step,
        next=row.next,
        label=row.label,
        tags=dict(row.tags),
        parent=ParentLook(row.parent_run, row.parent_step, row.parent_seq) if row.parent_run is not None else None,
        holder=HolderLook(holder.owner, moment(holder.until_us), holder.stands) if holder is not None else None,
        created=moment(row.created_us),
        changed=moment(row.changed_us),
        saved=moment(row.saved_us) if row.saved_us else None,
        until=moment(row.due_us) if row.due_us is not None else None,
        gates=tuple(wait.name for wait in row.waits if wait.kind == "gate"),
        cancelling=bool(row.cancel) and row.status != "cancelled",
        line=row.line,
        epoch=row.epoch,
        incarnation=row.incarnation,
        deaths=row.deaths,
        seq=row.seq,
        digest=row.digest.hex(),
        flow_version=row.flow_version,
        attempts=row.attempts,
    )


CHANGES_SECONDS = 0.5
"""One wait for a change; longer waits are made of several, so that a store can be closed meanwhile."""


async def changed(engine: Engine, seen: int, quiet_seconds: float | None) -> int | None:
    """Wait until something has changed; None after so long without a change."""
    end_us = None if quiet_seconds is None else engine.clock.now_us() + int(quiet_seconds * 1e6)
    while True:
        left = CHANGES_SECONDS if end_us is None else (end_us - engine.clock.now_us()) / 1e6
        found = await engine.store.changes(seen, max(0.0, min(left, CHANGES_SECONDS)))
        if found != seen:
            return found
        if left <= 0:
            return None
