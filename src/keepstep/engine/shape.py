"""What type a run's state has in the user's code, and how older versions of it are lifted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from msgspec.structs import replace

from keepstep.codec.kinds import Misfit
from keepstep.codec.parts import Parts, join, split
from keepstep.codec.registry import Registry
from keepstep.errors import BadInput, StateMismatch, shown

Lift = Callable[[Any], Any]


@dataclass(frozen=True)
class Shape:
    """The type and version of a state; without a type it is whatever was saved."""

    registry: Registry
    cls: type[Any] | None = None
    version: int = 1
    lift: Mapping[int, Lift] = field(default_factory=dict[int, Lift])
    """For each older version: a function from its fields (a dict) to those of the version after it."""

    @classmethod
    def of(cls, registry: Registry, state: type[Any] | None, version: int, lift: Mapping[int, Lift] | None) -> Shape:
        """The shape a caller asks for."""
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"version= is {shown(version)}; give a whole number from 1 up.")
        for old, function in _items(lift):
            if isinstance(old, bool) or not isinstance(old, int) or not callable(function):
                raise BadInput(
                    f"lift= has {shown(old)}: {shown(function)}; give a function for each older version's number."
                )
        if state is dict or state is None:
            return cls(registry, None, version, lift or {})
        known = registry.child()
        known.register_tree(state)
        return cls(known, state, version, lift or {})

    def made(self, run_id: str, plain: Any) -> Any:
        """An instance of the type, from its fields."""
        return self._made(run_id, plain)

    def cut(self, state: Any, reuse: Parts | None) -> Parts:
        """The state in parts."""
        if self.cls is not None and not isinstance(state, self.cls):
            raise BadInput(
                f"The state is a {type(state).__name__}; this run was opened with state={self.cls.__name__}."
            )
        return split(state, self.registry, reuse)

    def read(self, run_id: str, parts: Parts, version: int) -> Any:
        """The state, lifted to this version and made an instance of the type."""
        if version > self.version and (self.cls is not None or self.version > 1):
            raise StateMismatch(
                f"The state of run {run_id!r} has version {version}; this code knows up to {self.version}: deploy "
                "newer code.",
                run_id,
            )
        if self.cls is None and not self.lift:
            return self._joined(run_id, parts)
        plain = self._joined(run_id, replace(parts, tag=None))
        for old in range(version, self.version):
            plain = self._lifted(run_id, plain, old)
        return self._made(run_id, plain)

    def _joined(self, run_id: str, parts: Parts) -> Any:
        try:
            return join(parts, self.registry)
        except StateMismatch as error:
            raise StateMismatch(f"The state of run {run_id!r} cannot be made again: {error}", run_id) from None

    def _lifted(self, run_id: str, plain: Any, version: int) -> Any:
        lift = self.lift.get(version)
        if lift is None:
            raise StateMismatch(
                f"The state of run {run_id!r} has version {version}, and there is no lift={{{version}: ...}} "
                f"towards version {self.version}.",
                run_id,
            )
        return lift(plain)

    def _made(self, run_id: str, plain: Any) -> Any:
        if self.cls is None or isinstance(plain, self.cls):
            return plain
        kind = self.registry.kind_of(self.cls)
        if kind is None or not isinstance(plain, dict):
            raise StateMismatch(
                f"The state of run {run_id!r} is a {type(plain).__name__}, not a {self.cls.__name__}.", run_id
            )
        try:
            return kind.make(cast("dict[str, Any]", plain))
        except Misfit as error:
            raise StateMismatch(
                f"The state of run {run_id!r} does not fit {self.cls.__name__}: {error}. "
                "Give the field a default, or raise version= and pass lift=.",
                run_id,
            ) from None


def _items(lift: Any) -> list[tuple[Any, Any]]:
    if lift is None:
        return []
    if not isinstance(lift, Mapping):
        raise BadInput(f"lift= is {shown(lift)}; give a function for each older version, by its number.")
    return list(cast("Mapping[Any, Any]", lift).items())
