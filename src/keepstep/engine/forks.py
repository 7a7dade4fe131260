"""Forks: a new run that starts from a checkpoint of another, with edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from keepstep.codec.difference import difference
from keepstep.codec.framer import Framer
from keepstep.codec.parts import Parts, join
from keepstep.engine.bodies import written_head
from keepstep.engine.checkpoints import Loaded, SaveDraft, Tape, cut, load
from keepstep.engine.context import Engine
from keepstep.engine.decisions import decide
from keepstep.engine.history import locate
from keepstep.engine.inheritance import Inheritance, check_inheritance, inherit
from keepstep.engine.rows import check_id, find
from keepstep.engine.shape import Shape
from keepstep.errors import BadInput, RunExists, shown
from keepstep.log.fold import Fold
from keepstep.log.grow import Draft
from keepstep.log.records import Opened, Tagged
from keepstep.store.base import View


class _Remove:
    """The mark that takes a key away."""

    def __repr__(self) -> str:
        return "keepstep.REMOVE"


REMOVE: Final = _Remove()
"""As a value in `edits`: the key goes."""

Edits = Mapping[str, Any] | Callable[[Any], Any]


async def fork(
    engine: Engine,
    shape: Shape,
    run_id: str,
    *,
    step: int | None,
    edits: Edits | None,
    new_id: str | None,
    effects: Inheritance,
) -> str:
    """Start a new run from a checkpoint; returns its id. With the same id, edits and effects it can be repeated."""
    check_inheritance(effects)
    _, row = await find(engine, run_id)
    target = _name(engine, run_id) if new_id is None else new_id
    check_id(engine.limits, target)
    seq = await locate(engine, run_id, row, step=step, seq=None, label=None)
    loaded = await load(engine, run_id, seq)
    parts = _edited(engine, shape, run_id, loaded, edits)
    tape = Tape(Framer.fresh())
    draft = SaveDraft(
        tape, parts, target, next=loaded.head.next, step=loaded.head.step, label=None,
        version=loaded.head.version if edits is None else max(shape.version, loaded.head.version),
        flow=_flow(row, loaded),
    )  # fmt: skip
    inherited = await inherit(engine, run_id, effects)
    committed = await decide(engine, target, _Fork(run_id, row, loaded, draft, effects, inherited))
    if committed.append is None:
        await _must_be_equal(engine, target, parts, effects)
    return target


def _flow(parent: Fold, loaded: Loaded) -> tuple[str, bytes | None] | None:
    """Version and fingerprint of the flow that saved the checkpoint, which an older one may have done."""
    version = loaded.head.flow_version or parent.flow_version
    if version is None:
        return None
    return version, parent.flow_fingerprint if version == parent.flow_version else None


def _name(engine: Engine, parent_id: str) -> str:
    """The parent's id and random digits; of an id that leaves no room for them, its beginning."""
    end = f"~{engine.ids.short()}"
    room = max(0, engine.limits.id_bytes - len(end))
    return parent_id.encode()[:room].decode(errors="ignore") + end


def _edited(engine: Engine, shape: Shape, run_id: str, loaded: Loaded, edits: Edits | None) -> Parts:
    if edits is None:
        return loaded.parts
    state = shape.read(run_id, loaded.parts, loaded.head.version)
    return cut(engine, shape, edit(state, edits), None)


def edit(state: Any, edits: Edits) -> Any:
    """The state with values set, keys removed, or put through a function (which may change it in place)."""
    if callable(edits):
        changed = edits(state)
        return state if changed is None else changed
    if not isinstance(edits, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"edits= is a {type(edits).__name__}; give a dict of values, or a function of the state.")
    if isinstance(state, dict):
        merged = {**cast("dict[Any, Any]", state), **edits}
        return {key: value for key, value in merged.items() if value is not REMOVE}
    for name, value in edits.items():
        if not hasattr(state, name) or value is REMOVE:
            raise BadInput(f"The state, a {type(state).__name__}, has no field {shown(name)} that can be edited.")
    return _with_fields(state, edits)


def _with_fields(state: Any, edits: Mapping[str, Any]) -> Any:
    import copy

    changed = copy.copy(state)
    for name, value in edits.items():
        object.__setattr__(changed, name, value)
    return changed


@dataclass(frozen=True)
class _Fork:
    """The rule of a fork: it creates the run, or finds that it has done so before."""

    parent_id: str
    parent: Fold
    loaded: Loaded
    draft: SaveDraft
    effects: Inheritance
    inherited: Sequence[Draft]

    def __call__(self, view: View) -> Sequence[Draft]:
        self.draft.rewind()
        head = self.loaded.head
        if view.row is not None:
            if (view.row.parent_run, view.row.parent_seq) != (self.parent_id, head.seq):
                raise RunExists(
                    f"There is a run {view.run_id!r} already, and it is not this fork. Give the fork another id.",
                    view.run_id,
                )
            return []
        incarnation, epoch = view.buried
        flow = _flow(self.parent, self.loaded)
        opened = Opened(
            workflow=self.parent.workflow,
            incarnation=incarnation + 1,
            epoch=epoch,
            parent_run=self.parent_id,
            parent_seq=head.seq,
            parent_step=head.step,
            flow_version=flow[0] if flow is not None else None,
            flow_fingerprint=flow[1] if flow is not None else None,
            effects=self.effects,
        )
        drafts = [Draft(opened), *self.draft(Fold(), ahead=1)]
        if self.parent.tags:
            drafts.append(Draft(Tagged(tags=dict(self.parent.tags))))
        return [*drafts, *self.inherited]


async def _must_be_equal(engine: Engine, run_id: str, parts: Parts, effects: Inheritance) -> None:
    """A repeated fork must be the same fork: its first two records tell."""
    opened = await written_head(engine, run_id, 1)
    if isinstance(opened, Opened) and opened.effects != effects:
        raise RunExists(
            f"Run {run_id!r} was forked from the same checkpoint with effects={opened.effects!r}. "
            "Give this fork another id.",
            run_id,
        )
    first = await load(engine, run_id, 2)
    if first.parts != parts and difference(join(first.parts, engine.registry), join(parts, engine.registry)):
        raise RunExists(
            f"Run {run_id!r} was forked from the same checkpoint with other edits. Give this fork another id.", run_id
        )
