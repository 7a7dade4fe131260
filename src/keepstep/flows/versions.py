"""Which version of a flow may carry a run, and how a run of an older one is lifted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from keepstep.codec.registry import Registry
from keepstep.engine.shape import Shape
from keepstep.log.fold import Fields

if TYPE_CHECKING:
    from keepstep.flows.flow import Flow

FINGERPRINT_BYTES = 8


@dataclass(frozen=True)
class Migration:
    """From one version to another."""

    to_version: str
    lift: Callable[[Any], Any]
    steps: Mapping[str, str]
    """What steps are called now that were called otherwise."""


def fingerprint_of(start: str, steps: Sequence[str], state: type[Any] | None) -> bytes:
    """What a flow's runs rest on: the names of its steps, and of its state's fields."""
    fields = sorted(getattr(state, "__annotations__", {})) if state is not None else None
    material = msgspec.msgpack.encode((start, sorted(steps), fields))
    return blake2b(material, digest_size=FINGERPRINT_BYTES, person=b"keepstep flow").digest()


def path_from(flow: Flow, version: str | None) -> list[Migration] | None:
    """The way of a run of this version to the flow's; empty when it is there, None when there is no way.

    A run that was opened without a flow has no version: it is what the flow takes it for.
    """
    path: list[Migration] = []
    while version is not None and version != flow.version:
        step = flow.migrations.get(version)
        if step is None or len(path) > len(flow.migrations):
            return None
        path.append(step)
        version = step.to_version
    return path


def next_of(path: Sequence[Migration], step: str | None) -> str | None:
    """What the next step of a run is called once it has been lifted."""
    return reduce(lambda name, one: one.steps.get(name, name), path, step) if step is not None else None


def shape_of(flow: Flow, registry: Registry, path: Sequence[Migration] = ()) -> Shape:
    """How the state of the flow's runs is read, lifted on the way."""
    shape = Shape.of(registry, flow.state, 1, None)
    if not path:
        return shape

    def lift(plain: Any) -> Any:
        return reduce(lambda state, one: one.lift(state), path, plain)

    return Shape(shape.registry, shape.cls, 2, {1: lift})


class Crowd:
    """The flows of one worker, several versions of one name among them."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self._by_name: dict[str, list[Flow]] = {}
        for one in flows:
            self._by_name.setdefault(one.name, []).append(one)

    @property
    def names(self) -> list[str]:
        """The workflows that they carry."""
        return list(self._by_name)

    def versions(self, name: str) -> list[str]:
        """The versions of one workflow that are here."""
        return [one.version for one in self._by_name.get(name, ())]

    def flow_for(self, row: Fields) -> Flow | None:
        """Who carries a run: its own version, or the last named one that can lift it; None when nobody can."""
        flows = self._by_name.get(row.workflow, [])
        own = [one for one in flows if row.flow_version == one.version]
        able = [one for one in flows if path_from(one, row.flow_version) is not None]
        return next(iter(own or reversed(able)), None)
