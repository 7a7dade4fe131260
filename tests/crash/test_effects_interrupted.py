"""Ctrl-C, and the cancelling of a task, at every operation of a run with effects.

The run is released, it is in doubt only where a call was under way, and whoever goes on does nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, cast

import pytest

import keepstep
from keepstep.api.places import store_for
from keepstep.testing import FaultyStore
from tests.crash.effect_programs import PROGRAMS, RUN, Plain, Program
from tests.crash.outside import Outside, Tools, settle
from tests.crash.points import at_every_point
from tests.crash.test_effects_crash import judge_effects, undisturbed
from tests.handles import LOOP, act
from tests.places import Place

VISITS_MAX = 10
WHERES = ("memory-sync", "sqlite-sync", "memory-async", "sqlite-async")
QUICK = ("memory-sync", "memory-async")


class InterruptedStore(FaultyStore):
    """Interrupts whoever uses it at one operation, on either side of it, and goes on to work."""

    interrupt: Callable[[], None]

    async def _do(self, operation: Any) -> Any:
        self.operations += 1
        is_due = self.operations == self.at
        if is_due and self.when == "before":
            self._interrupt(operation)
        result = await operation
        if is_due and self.when == "after":
            self.interrupt()
        return result

    def _interrupt(self, operation: Any) -> None:
        try:
            self.interrupt()
        except BaseException:
            operation.close()
            raise


class WatchedTools(Tools):
    """Knows which calls have been under way."""

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self.entered: set[str] = set()
        """Their idempotency keys."""

    def do(self, tool: str, *args: Any, once_per_key: bool = False) -> str:
        self.entered.add(keepstep.effect().idempotency_key)
        return super().do(tool, *args, once_per_key=once_per_key)


def press() -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


def carry_out(store: Any, program: Program, tools: Tools, interrupted: InterruptedStore) -> None:
    """Enter the run and go on with it; a task is cancelled instead of interrupted."""
    if isinstance(store, keepstep.Store):
        interrupted.interrupt = press
        from keepstep.runtime.inline import drive

        with store.run(RUN, "w") as run:
            drive(cast(Any, program(Plain(run), tools)))
        return

    async def work() -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        interrupted.interrupt = lambda: cast(None, loop.call_soon_threadsafe(task.cancel))
        async with store._handle.run(RUN, "w") as run:
            await program(run, tools)

    LOOP.run(work())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("where", [pytest.param(one, marks=() if one in QUICK else pytest.mark.soak) for one in WHERES])
def test_an_interruption_at_any_operation_releases_the_run_and_doubts_only_what_was_under_way(
    where, program, when, folder
):
    def go(place: Place, at: int) -> bool:
        interrupted = InterruptedStore(store_for(place.url, place.clock, read_only=False), 0, when)
        store = place.open(cast(Any, interrupted))
        act(store, lambda engine: engine.ownership.owner())  # who has no heart yet needs none
        interrupted.at = interrupted.operations + at
        _to_the_end(place, store, PROGRAMS[program], interrupted)
        is_struck = interrupted.operations >= interrupted.at
        interrupted.at = 0  # the place may be closed
        return is_struck

    at_every_point(where, folder, go, least=10)


def _to_the_end(place: Place, store: Any, program: Program, interrupted: InterruptedStore) -> None:
    watcher = place.open()
    tools = WatchedTools(Outside(place.folder / "outside"))
    for _ in range(VISITS_MAX):
        try:
            carry_out(store, program, tools, interrupted)
        except (KeyboardInterrupt, CancelledError):
            _judge_interrupted(place, store, watcher, tools)
        except keepstep.EffectInDoubt as doubt:
            settle(watcher, RUN, doubt, tools.outside)
        except keepstep.RunFinished:
            break
        else:
            break
    look = watcher.look(RUN)
    assert (look.status, look.state, look.result) == undisturbed(program)
    judge_effects(watcher, RUN, tools.outside.lines())


def _judge_interrupted(place: Place, store: Any, watcher: Any, tools: WatchedTools) -> None:
    """The run is free at the next heartbeat at the latest."""
    place.beat(store)
    try:
        look = watcher.look(RUN)
    except keepstep.NoSuchRun:
        return
    assert look.status in ("ready", "finished")
    assert watcher.verify(RUN).ok
    # Beside a loop, a call is under way once a thread was asked to make it, whether or not the thread has begun.
    unknown = ("began", "doubted") if place.mode == "sync" else ("began",)
    for one in watcher.effects(RUN):
        if one.status in unknown and one.tool.startswith("Tools."):
            assert one.idempotency_key in tools.entered, f"{one} is in doubt, and was not called"
