"""Going through a run's checkpoints: light lines, whole states of any of them, and what lies between two."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from keepstep.codec.difference import Change, difference
from keepstep.engine.bodies import damaged, head_of, written_head
from keepstep.engine.checkpoints import Loaded, check_names, load
from keepstep.engine.context import Engine
from keepstep.engine.looks import Checkpoint, CheckpointHead, PageOf
from keepstep.engine.moments import moment
from keepstep.engine.rows import check_direction, check_id, check_page, find
from keepstep.engine.shape import Shape
from keepstep.errors import BadInput, Damaged, NoSuchCheckpoint, shown
from keepstep.log.fold import Fold
from keepstep.log.ledger import key_of_label
from keepstep.log.records import AnyRecord, Opened, Saved

CHUNK_MIN = 64
"""Heads read at once; a run's other records lie between its checkpoints."""


async def history(
    engine: Engine, run_id: str, *, newest_first: bool, limit: int, cursor: str | None
) -> PageOf[CheckpointHead]:
    """A page of checkpoints, of all lines, without their states."""
    check_page(limit)
    check_direction(newest_first)
    _, row = await find(engine, run_id)
    at = _cursor(cursor, row.seq + 1 if newest_first else 0)
    items: list[CheckpointHead] = []
    while len(items) <= limit:
        heads, at = await _chunk(engine, run_id, at, newest_first=newest_first, count=max(CHUNK_MIN, 2 * limit))
        items += [checkpoint_head(run_id, head) for head in heads if isinstance(head, Saved)]
        if not heads:
            break
    more = str(items[limit - 1].seq) if len(items) > limit else None
    return PageOf(items[:limit], more)


async def _chunk(
    engine: Engine, run_id: str, at: int, *, newest_first: bool, count: int
) -> tuple[list[AnyRecord], int]:
    if newest_first:
        found = await engine.store.records(run_id, until=at - 1, bodies=False, newest_first=True, limit=count)
        found = sorted(found, reverse=True)
    else:
        found = await engine.store.records(run_id, after=at, bodies=False, limit=count)
    heads = [head_of(run_id, one) for one in found]
    return heads, heads[-1].seq if heads else at


def _cursor(cursor: str | None, start: int) -> int:
    if cursor is None:
        return start
    if not isinstance(cursor, str) or not cursor.isdecimal() or len(cursor) > 12:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"cursor= is {shown(cursor)}; pass the .next of the page before.")
    return int(cursor)


def checkpoint_head(run_id: str, head: Saved) -> CheckpointHead:
    """A checkpoint's head as people read it."""
    try:
        saved = moment(head.at_us)
    except OverflowError:
        raise damaged(run_id, head.seq, "It was saved at a time that is none.") from None
    return CheckpointHead(
        seq=head.seq,
        step=head.step,
        next=head.next,
        label=head.label,
        line=head.line,
        at=saved,
        epoch=head.epoch,
        parent_seq=head.parent or None,
        state_bytes=head.whole_bytes,
        stored_bytes=head.body_bytes,
    )


async def at(
    engine: Engine,
    shape: Shape,
    run_id: str,
    *,
    step: int | None = None,
    seq: int | None = None,
    label: str | None = None,
) -> Checkpoint:
    """One checkpoint with its state: by step of the current line, by seq, by label (the newest), or the current one."""
    try:
        _, row = await find(engine, run_id)
    except Damaged:
        if seq is None:
            raise
        return await _read_without_row(engine, shape, run_id, seq)
    found = await locate(engine, run_id, row, step=step, seq=seq, label=label)
    return await read(engine, shape, run_id, row, found, current=step is seq is label is None)


async def current(engine: Engine, shape: Shape, run_id: str) -> Checkpoint | None:
    """The current checkpoint; None when there is no such run, or nothing saved in it."""
    check_id(engine.limits, run_id)
    row = (await engine.store.view(run_id)).row
    if row is None or not row.saved:
        return None
    return await read(engine, shape, run_id, row, row.saved, current=True)


async def read(engine: Engine, shape: Shape, run_id: str, row: Fold, seq: int, *, current: bool) -> Checkpoint:
    """The checkpoint that is record `seq`; `current` when only the row says that it is one."""
    loaded = await load(engine, run_id, seq)
    if current:
        _must_be_current(run_id, loaded.head, row)
    return _checkpoint(shape, run_id, row.workflow, loaded)


async def _read_without_row(engine: Engine, shape: Shape, run_id: str, seq: int) -> Checkpoint:
    """The same, from the log alone: it can be whole where the row is not.

    The workflow is empty when even the record that opened the run is damaged.
    """
    loaded = await load(engine, run_id, await _by_seq(engine, run_id, seq, seq))
    try:
        opened = await written_head(engine, run_id, 1)
    except Damaged:
        opened = None
    return _checkpoint(shape, run_id, opened.workflow if isinstance(opened, Opened) else "", loaded)


def _checkpoint(shape: Shape, run_id: str, workflow: str, loaded: Loaded) -> Checkpoint:
    state = shape.read(run_id, loaded.parts, loaded.head.version)
    head = checkpoint_head(run_id, loaded.head)
    return Checkpoint(**asdict(head), run_id=run_id, workflow=workflow, version=loaded.head.version, state=state)


def _must_be_current(run_id: str, head: Saved, row: Fold) -> None:
    """The row knows what the current checkpoint's head says; it tells damage without reading more."""
    if (head.step, head.next, head.label, head.version) != (row.step, row.next, row.label, row.version):
        raise damaged(run_id, head.seq, "It is not the checkpoint that the run's row speaks of.")


async def locate(
    engine: Engine, run_id: str, row: Fold, *, step: int | None, seq: int | None, label: str | None
) -> int:
    """The seq of the checkpoint that is meant."""
    if sum(one is not None for one in (step, seq, label)) > 1:
        raise BadInput("Give one of step=, seq= and label=.")
    if not row.saved:
        raise NoSuchCheckpoint(f"Run {run_id!r} has no checkpoint yet.", run_id)
    if step is not None:
        return await _by_step(engine, run_id, row, step)
    if seq is not None:
        return await _by_seq(engine, run_id, seq, row.seq)
    if label is not None:
        check_names(engine.limits, label=label)
        found = await engine.store.effects(run_id, [key_of_label(label)])
        if not found:
            raise NoSuchCheckpoint(f"Run {run_id!r} has no checkpoint with the label {label!r}.", run_id)
        return await _by_seq(engine, run_id, found[0].began, row.seq)
    return row.saved


async def _by_seq(engine: Engine, run_id: str, seq: int, last: int) -> int:
    """The seq, if it is a checkpoint's; `last` is up to where there must be records."""
    if isinstance(seq, bool) or not isinstance(seq, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"seq= is {shown(seq)}; give a whole number.")
    found = await written_head(engine, run_id, seq) if seq > 0 else None
    if found is None and 0 < seq <= last:
        raise damaged(run_id, seq, "It is missing.")
    if not isinstance(found, Saved):
        raise NoSuchCheckpoint(
            f"Record {shown(seq)} of run {run_id!r} is not a checkpoint; history() lists their seqs.", run_id
        )
    return seq


async def _by_step(engine: Engine, run_id: str, row: Fold, step: int) -> int:
    """Follow the jumps back along the current line; a few dozen heads whatever its length."""
    if isinstance(step, bool) or not isinstance(step, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"step= is {shown(step)}; give a whole number.")
    later: int | None = None
    seq = _nearest_jump(row, step)
    while seq:
        head = await _saved_head(engine, run_id, seq)
        if head.step == step:
            return seq
        if head.step < step:
            raise NoSuchCheckpoint(
                f"Run {run_id!r} has no step {shown(step)} on its line; the steps around it are {head.step} and "
                f"{later if later is not None else 'none later'}.",
                run_id,
            )
        later = head.step
        seq = head.jump if head.jump and head.jump_step >= step else head.parent
    raise NoSuchCheckpoint(f"Run {run_id!r} has no step {shown(step)}; its first is {later}.", run_id)


def _nearest_jump(row: Fold, step: int) -> int:
    """The earliest of the checkpoints the row knows that is not before the step."""
    fit = [seq for seq, known_step, _ in row.jumps if known_step >= step]
    return fit[0] if fit else row.saved


async def _saved_head(engine: Engine, run_id: str, seq: int) -> Saved:
    head = await written_head(engine, run_id, seq)
    if not isinstance(head, Saved):
        raise damaged(run_id, seq, "It is missing, or no checkpoint.")
    return head


async def diff(
    engine: Engine, shape: Shape, run_id: str, old: int | None, new: int | None, *, other: str | None
) -> list[Change]:
    """What changed from one step to another, or between the steps of two runs; None means the current step."""
    states: list[Any] = []
    for one_id, step in ((run_id, old), (run_id if other is None else other, new)):
        states.append((await at(engine, shape, one_id, step=step)).state)
    return difference(states[0], states[1])
