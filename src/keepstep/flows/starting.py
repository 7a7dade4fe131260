"""Starting a run of a flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from keepstep.engine.context import Engine
from keepstep.engine.rows import check_id
from keepstep.engine.shape import Shape
from keepstep.engine.starting import Beginning
from keepstep.engine.starting import start as start_run
from keepstep.errors import BadInput, StateMismatch, WrongWorkflow, shown
from keepstep.flows.flow import Flow
from keepstep.flows.versions import shape_of
from keepstep.log.records import TagValue


def engine_of(engine: Engine, flow: Flow) -> Engine:
    """The engine for the flow's runs, which knows their state's type wherever it stands: in a result, a memo."""
    return engine._replace(registry=shape_of(flow, engine.registry).registry)


async def start(engine: Engine, flow: Flow, run_id: str, given: Any, tags: Mapping[str, TagValue] | None) -> bool:
    """Start a run; False when it is there already, with the same input."""
    flow.check()
    if given is None and await _is_there(engine, flow, run_id):
        return False
    shape = shape_of(flow, engine.registry)
    state = None if given is None and flow.whole is not None else _state(flow, shape, given)
    beginning = Beginning(
        workflow=flow.name,
        flow=(flow.version, flow.fingerprint),
        next=None if flow.whole is not None else flow.start,
        state=state,
        input=None if given is None else state,
        tags=tags,
    )
    return await start_run(engine, shape, run_id, beginning)


async def _is_there(engine: Engine, flow: Flow, run_id: str) -> bool:
    """Whether there is such a run to go on with, for which no input is needed."""
    check_id(engine.limits, run_id)
    row = (await engine.store.view(run_id)).row
    if row is not None and row.workflow != flow.name:
        raise WrongWorkflow(run_id, row.workflow, flow.name)
    return row is not None


def _state(flow: Flow, shape: Shape, given: Any) -> Any:
    """The input as the first state: fields become an instance of the flow's type."""
    plain: Any = {} if given is None else given
    if shape.cls is None or isinstance(plain, shape.cls):
        return plain
    if not isinstance(plain, Mapping):
        raise BadInput(
            f"The input of flow {flow.name!r} is {shown(plain)}; give a {shape.cls.__name__}, or a dict of its fields."
        )
    try:
        return shape.made("", dict(cast("Mapping[str, Any]", plain)))
    except StateMismatch as error:
        told = str(error).removeprefix("The state of run '' does not fit ").partition(". Give the field")[0]
        raise BadInput(f"The input of flow {flow.name!r} does not fit {told}.") from None
