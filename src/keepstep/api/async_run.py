"""The handle of a claimed run, async: the same names as in `run`, awaited."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from keepstep.api.held import Held
from keepstep.api.leaving import leave
from keepstep.engine import claims, marks, saves
from keepstep.engine.bodies import to_body
from keepstep.log.records import TagValue


class AsyncRun(Held):
    """A run that this process holds: nobody else can write it until the block ends or `close` is called."""

    async def save(
        self, state: Any, next: str | None = None, *, step: int | None = None, label: str | None = None
    ) -> int:
        """Save a checkpoint; it is durable when this returns. Returns its step.

        Steps count up from 1; `step=` gives the number instead (it must grow; gaps are fine). `next` names what is to
        be done next, `label` makes the checkpoint easy to find again.
        """
        claim = self._claimed("save")
        return await saves.save(claim, self._shape, self._tape, state, next=next, step=step, label=label)

    async def finish(self, result: Any = None) -> None:
        """End the run with a result; durable when this returns."""
        claim = self._claimed("finish")
        await claims.finish(claim, to_body(claim.engine, result, "result"))

    async def note(self, value: Any) -> None:
        """Remark on the progress; `look(...).note` shows the last remark."""
        await marks.note(self._claimed("note"), value)

    async def tag(self, tags: Mapping[str, TagValue | None] | None = None, /, **more: TagValue | None) -> None:
        """Set searchable marks on the run; None takes one away."""
        await marks.tag(self._claimed("tag"), marks.together(tags, more))

    async def close(self) -> None:
        """Release the run, ready for whoever comes next. Twice is fine."""
        await leave(self._inherited("close"), None, ())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if os.getpid() == self._pid:  # a child that leaves the block by a fork leaves the run to its parent
            await leave(self._claim, error, self._interrupts)
