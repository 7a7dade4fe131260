"""Starting a run for whoever carries it on: opened with its first checkpoint, in one append, and not claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keepstep.codec.framer import Framer
from keepstep.engine.bodies import from_body, given_body, record_at
from keepstep.engine.checkpoints import SaveDraft, Tape, check_names, cut
from keepstep.engine.context import Engine
from keepstep.engine.decisions import decide
from keepstep.engine.rows import check_id, check_tags
from keepstep.engine.shape import Shape
from keepstep.errors import RunExists, WrongWorkflow
from keepstep.log.chain import digest_of
from keepstep.log.fold import Fold
from keepstep.log.grow import Draft
from keepstep.log.records import Opened, Tagged, TagValue
from keepstep.store.base import View


@dataclass(frozen=True)
class Beginning:
    """What a run begins with."""

    workflow: str
    flow: tuple[str, bytes]
    """Version and fingerprint."""
    next: str | None
    state: Any
    """None when the run has no checkpoint yet."""
    input: Any
    """None when none was given, which fits a run that is there with any."""
    tags: Mapping[str, TagValue] | None = None


async def start(engine: Engine, shape: Shape, run_id: str, beginning: Beginning) -> bool:
    """Start a run; False when it is there already, with the same input. Other input is an error."""
    check_id(engine.limits, run_id)
    check_names(engine.limits, workflow=beginning.workflow, next=beginning.next, flow_version=beginning.flow[0])
    tags = {name: value for name, value in check_tags(engine.limits, beginning.tags or {}).items() if value is not None}
    body = None if beginning.input is None else given_body(engine, beginning.input, "state")
    draft = None
    if beginning.state is not None:
        tape = Tape(Framer.fresh())
        parts = cut(engine, shape, beginning.state, None)
        draft = SaveDraft(
            tape, parts, run_id, next=beginning.next, step=0, label=None, version=shape.version, flow=beginning.flow
        )
    committed = await decide(engine, run_id, _Start(beginning, body, draft, tags))
    if committed.append is not None:
        return True
    if body is not None:
        await _must_be_equal(engine, run_id, body)
    return False


@dataclass(frozen=True)
class _Start:
    """The rule: it creates the run, or finds it."""

    beginning: Beginning
    body: bytes | None
    draft: SaveDraft | None
    tags: Mapping[str, TagValue]

    def __call__(self, view: View) -> Sequence[Draft]:
        beginning = self.beginning
        if self.draft is not None:
            self.draft.rewind()  # a decision may be made twice
        if view.row is not None:
            if view.row.workflow != beginning.workflow:
                raise WrongWorkflow(view.run_id, view.row.workflow, beginning.workflow)
            return []
        incarnation, epoch = view.buried
        version, fingerprint = beginning.flow
        opened = Opened(
            workflow=beginning.workflow,
            incarnation=incarnation + 1,
            epoch=epoch,
            flow_version=version,
            flow_fingerprint=fingerprint,
        )
        saved = [] if self.draft is None else self.draft(Fold(flow_fingerprint=fingerprint), ahead=1)
        tagged = [Draft(Tagged(tags=dict(self.tags)))] if self.tags else []
        return [Draft(opened, self.body), *saved, *tagged]


async def _must_be_equal(engine: Engine, run_id: str, body: bytes) -> None:
    """What is started again must be the same."""
    record, value = await record_at(engine, run_id, 1)
    if record.body != digest_of(body) and (record.body is None or value != from_body(engine, body)):
        raise RunExists(
            f"Run {run_id!r} was started with other input. Give this one another id, or leave the input out to go on "
            "with that one.",
            run_id,
        )
