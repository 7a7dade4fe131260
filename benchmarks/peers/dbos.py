"""DBOS on SQLite or PostgreSQL: a workflow in which every save is one step, whose result DBOS records.

A step's result is what that step adds: its message in the conversation, the state where all of it changes.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from dbos import DBOS, DBOSClient, SetWorkflowID

from benchmarks.conversation import Say, scalars, turn
from benchmarks.many_runs import RUNS, Burst, state_of
from benchmarks.small_state import Save, State
from benchmarks.working import SERVER, STEPS

_work: Callable[[Any], None]
"""What the workflow is to do: a workflow's own arguments have to be plain data."""


@DBOS.step()
def _record(value: Any) -> Any:
    return value


@DBOS.workflow()
def _follow() -> None:
    _work(_record)


@DBOS.workflow()
def _save_all(run: int, first: int, stop: int) -> None:
    for number in range(first, stop):
        _record(state_of(run, number))


@contextmanager
def _launched(folder: Path) -> Iterator[None]:
    DBOS(
        config={
            "name": "benchmarks",
            "system_database_url": _url(folder),
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()


def _url(folder: Path) -> str:
    if (server := folder / SERVER).exists():
        return server.read_text()
    return f"sqlite:///{folder / 'dbos.sqlite'}"


def _recorded(folder: Path, workflow_id: str) -> list[Any]:
    client = DBOSClient(system_database_url=_url(folder))
    try:
        return [step["output"] for step in client.list_workflow_steps(workflow_id)]
    finally:
        client.destroy()


def _in_workflow(folder: Path, workflow_id: str, work: Callable[[Any], None]) -> None:
    global _work  # noqa: PLW0603 - see there
    _work = work
    with _launched(folder), SetWorkflowID(workflow_id):
        _follow()


def converse(folder: Path, work: Callable[[Say], None]) -> list[str]:
    """The conversation."""

    def talk(record: Callable[[Any], Any]) -> None:
        work(lambda number, text: record({"message": turn(number, text), **scalars(number)}))

    _in_workflow(folder, "talk", talk)
    return [one["message"]["content"] for one in _recorded(folder, "talk")]


def save_small(folder: Path, work: Callable[[Save], None]) -> State:
    """A run with a small state."""
    _in_workflow(folder, "small", work)
    return _recorded(folder, "small")[-1]


def save_in_threads(folder: Path, work: Callable[[Burst], None]) -> list[State]:
    """Many workflows at once, each in a thread; a turn is a workflow of its own in each."""
    last: dict[int, str] = {}

    def one(run: int, numbers: range) -> Any:
        last[run] = f"run-{run}-{numbers.start}-{numbers.stop}"
        with SetWorkflowID(last[run]):
            return DBOS.start_workflow(_save_all, run, numbers.start, numbers.stop)

    def everyone(numbers: range) -> None:
        for handle in [one(run, numbers) for run in range(RUNS)]:
            handle.get_result()

    with _launched(folder):
        work(everyone)
    return [_recorded(folder, last[run])[-1] for run in range(RUNS)]


@DBOS.step()
def _nothing() -> None:
    return


@DBOS.workflow()
def _steps() -> None:
    for _ in range(STEPS):
        _nothing()


def carry_steps(folder: Path, runs: int) -> float:
    """Workflows of steps that do nothing, all started at once, in the threads that DBOS has for them; the seconds."""
    with _launched(folder):
        start = perf_counter()
        for handle in [DBOS.start_workflow(_steps) for _ in range(runs)]:
            handle.get_result()
        return perf_counter() - start
