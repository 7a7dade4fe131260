"""Deleting runs, and what they weigh."""

from __future__ import annotations

from keepstep.codec.difference import weigh
from keepstep.engine.checkpoints import load
from keepstep.engine.context import Engine
from keepstep.engine.looks import Size
from keepstep.engine.moments import moment
from keepstep.engine.rows import check_id, find
from keepstep.errors import BadInput, RunHeld, shown
from keepstep.store.base import View


async def delete(engine: Engine, run_id: str, *, force: bool) -> bool:
    """Erase a run, leaving only its tombstone; False when there was none. A held run needs force."""
    check_id(engine.limits, run_id)
    if not isinstance(force, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"force= is {shown(force)}; give True or False.")

    def decide(view: View) -> None:
        holder = view.holder
        if holder is not None and holder.stands and not force:
            raise RunHeld(run_id, holder.owner, moment(holder.until_us))

    found = await engine.store.delete(run_id, decide)
    engine.tapes.forget(run_id)
    return found


async def size(engine: Engine, run_id: str | None) -> Size:
    """What a run weighs, by key of its newest state; or what the whole store weighs."""
    if run_id is None:
        weight = await engine.store.size(None)
        return Size(weight.file_bytes, weight.head_bytes, weight.body_bytes, weight.records, weight.runs)
    _, row = await find(engine, run_id)
    weight = await engine.store.size(run_id)
    parts = (await load(engine, run_id, row.saved)).parts if row.saved else None
    return Size(
        total=weight.head_bytes + weight.body_bytes,
        heads=weight.head_bytes,
        bodies=weight.body_bytes,
        records=weight.records,
        state=parts.size if parts else 0,
        by_key=weigh(parts) if parts else {},
    )
