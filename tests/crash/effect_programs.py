"""Agents as plain loops, whose effects the crash tests count.

A program is written once, with await. Sync handles are put behind `Plain`, whose coroutines never suspend.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import keepstep
from keepstep.runtime.inline import drive
from tests.crash.outside import Tools
from tests.handles import LOOP

Program = Callable[[Any, Tools], Awaitable[None]]
RUN = "run"


class Plain:
    """A sync run, or what its `using` gives, with names that are awaited."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @property
    def state(self) -> Any:
        return self._handle.state

    def using(self, **said: Any) -> Plain:
        return Plain(self._handle.using(**said))

    async def memo(self, function: Any, *args: Any) -> Any:
        return self._handle.memo(plain(function), *args)

    async def once(self, function: Any, *args: Any) -> Any:
        return self._handle.once(plain(function), *args)

    async def gather(self, *calls: Callable[[], Any]) -> list[Any]:
        return self._handle.gather(*[functools.partial(_driven, call) for call in calls])

    async def save(self, state: Any, next: str | None = None) -> int:
        return self._handle.save(state, next)

    async def finish(self, result: Any) -> None:
        self._handle.finish(result)


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does what a coroutine function does, under the same name."""
    if not inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        return drive(function(*args))

    return called


def _driven(call: Callable[[], Any]) -> Any:
    return drive(call())


def carry_out(store: Any, run_id: str, program: Program, tools: Tools) -> None:
    """Enter the run and go on with it, through the handles that the store has."""
    if isinstance(store, keepstep.Store):
        with store.run(run_id, "w") as run:
            drive(program(Plain(run), tools))  # type: ignore[arg-type]
        return

    async def work() -> None:
        async with store._handle.run(run_id, "w") as run:
            await program(run, tools)

    LOOP.run(work())


# --- the programs ----------------------------------------------------------------------------------------------------


async def paying(run: Any, tools: Tools) -> None:
    """A model, a payment with a key, and mails without."""
    done = run.state or []
    while len(done) < 2:
        number = len(done)
        plan = await run.memo(tools.model, f"plan {number}")
        paid = await run.using(key=f"call {number}", unsure="raise").once(tools.pay, f"ada {number}", 420)
        mails = [await run.using(unsure="raise").once(tools.mail, f"{who} {number}") for who in ("bob", "eve")]
        done = [*done, [plan, paid, *mails]]
        await run.save(done, "again")
    await run.finish(len(done))


async def at_once(run: Any, tools: Tools) -> None:
    """Calls at once: two of them have no key, and are told apart by their place."""
    done = run.state or []
    while len(done) < 2:
        number = len(done)
        found = await run.gather(
            lambda number=number: run.memo(tools.search, f"north {number}"),
            lambda number=number: run.using(unsure="raise").once(tools.reserve, f"seat {number}"),
            lambda number=number: run.using(unsure="raise").once(tools.reserve, f"bed {number}"),
            lambda number=number: run.using(key=f"call {number}", unsure="raise").once(tools.pay, f"ada {number}", 1),
        )
        done = [*done, found]
        await run.save(done)
    await run.finish(done)


async def nesting(run: Any, tools: Tools) -> None:
    """A call that makes calls of its own."""

    async def book(trip: str) -> str:
        parts = [
            await run.memo(tools.search, f"route {trip}"),
            await run.using(key="train", unsure="raise").once(tools.pay, f"railway {trip}", 30),
            await run.using(unsure="raise").once(tools.reserve, f"room {trip}"),
        ]
        return tools.do("book", trip, parts)

    done = run.state or []
    while len(done) < 2:
        done = [*done, await run.using(key=f"trip {len(done)}", unsure="raise").once(book, f"trip {len(done)}")]
        await run.save(done)
    await run.finish(done)


async def various(run: Any, tools: Tools) -> None:
    """Tools that may be called again, that can be asked, and that say that they did nothing."""
    done = run.state or []
    while len(done) < 2:
        number = len(done)
        plan = await run.memo(tools.model, f"plan {number}")
        uploaded = await run.using(idempotent=True, unsure="raise").once(tools.upload, f"file {number}")
        sent = await run.using(reconcile=tools.look_for, unsure="raise").once(tools.transfer, f"eve {number}")
        ordered = await until_done(run.using(key=f"order {number}", unsure="raise"), tools.order, f"book {number}")
        done = [*done, [plan, uploaded, sent, ordered]]
        await run.save(done)
    await run.finish(done)


async def until_done(using: Any, tool: Any, *args: Any) -> Any:
    """Call again whenever the tool says that it did nothing."""
    while True:
        try:
            return await using.once(tool, *args)
        except keepstep.NotDone:
            continue


PROGRAMS: dict[str, Program] = {
    "paying": paying,
    "at once": at_once,
    "nesting": nesting,
    "various": various,
}
