"""`keepstep worker`: carry runs on until told to stop."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from keepstep.api.opening import open as open_store
from keepstep.api.opening import open_async
from keepstep.cli.loading import load_flows
from keepstep.engine.calls import is_awaited
from keepstep.errors import BadInput

LEVELS = ("debug", "info", "warning", "error")


def worker(  # noqa: PLR0917 - options of a command line, given by name
    flows: Annotated[list[str], typer.Argument(help="module:flow, or module for all flows in it", show_default=False)],
    store: Annotated[str, typer.Option(envvar="KEEPSTEP_STORE", help="URL or path of the store", show_default=False)],
    concurrency: Annotated[int, typer.Option(help="How many runs are carried at once.")] = 8,
    poll: Annotated[str, typer.Option(help="How often to look when nobody tells of a change.")] = "1s",
    grace: Annotated[str, typer.Option(help="How long steps may take to end after SIGTERM.")] = "30s",
    lease: Annotated[str, typer.Option(help="How long a frozen process keeps its runs.")] = "30s",
    deaths: Annotated[int, typer.Option(help="A run that ended its worker so often is failed.")] = 5,
    alive: Annotated[Path | None, typer.Option(help="A file to touch every second.", show_default=False)] = None,
    log_level: Annotated[str, typer.Option(help=", ".join(LEVELS))] = "info",
) -> None:
    """Carry runs of your flows on, until SIGTERM or Ctrl-C.

    Runs that are ready, that are due, whose question was answered, or whose worker died. A second signal gives back
    what is being carried at once.
    """
    if log_level not in LEVELS:
        raise BadInput(f"--log-level is {log_level!r}; give one of {', '.join(LEVELS)}.")
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    if store.startswith("memory:"):
        raise BadInput("--store is in memory, which no other process reaches; name a file, or use store.worker().")
    found = load_flows(flows)
    how: dict[str, Any] = {
        "concurrency": concurrency,
        "poll": _length(poll),
        "grace": _length(grace),
        "deaths": deaths,
        "alive": alive,
    }
    if any(is_awaited(function) for flow in found for function in flow.functions):
        import asyncio

        asyncio.run(_work_on_loop(store, _length(lease), found, how))
    else:
        _work(store, _length(lease), found, how)


def _work(url: str, lease: float | str, flows: list[Any], how: dict[str, Any]) -> None:
    """With plain steps only: in threads."""
    with open_store(url, lease=lease) as opened, opened.worker(*flows, **how) as working:
        _on_signals(working.stop)
        working.wait()


async def _work_on_loop(url: str, lease: float | str, flows: list[Any], how: dict[str, Any]) -> None:
    """With steps that are awaited: on an event loop."""
    async with open_async(url, lease=lease) as opened, opened.worker(*flows, **how) as working:
        _on_signals(working.stop)
        await working.wait()


def _on_signals(stop: Callable[..., None]) -> None:
    """The first signal stops gracefully, the second at once."""
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        stop(at_once=bool(seen))
        seen.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _length(text: str) -> float | str:
    """A length of time: `90s`, `1m`, or a plain number of seconds."""
    try:
        return float(text)
    except ValueError:
        return text
