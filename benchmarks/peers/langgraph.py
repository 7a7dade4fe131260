"""LangGraph's SQLite checkpointers, called as its graphs call them: one `put` and one `put_writes` per step.

In its default way the messages are LangChain's objects; plain dicts are what a graph with a state of its own may use.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from benchmarks.conversation import Say, scalars, turn
from benchmarks.many_runs import RUNS, Burst, state_of
from benchmarks.small_state import Save, State

TASK = "00000000-0000-0000-0000-000000000001"
FILE = "checkpoints.sqlite"


def converse(folder: Path, work: Callable[[Say], None]) -> list[str]:
    """The conversation with message objects, as LangGraph's own examples have it."""
    return _converse(folder, work, _message)


def converse_plainly(folder: Path, work: Callable[[Say], None]) -> list[str]:
    """The conversation with dicts as messages."""
    return _converse(folder, work, turn)


def _message(number: int, text: str) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage

    plain = turn(number, text)
    kind = HumanMessage if plain["role"] == "user" else AIMessage
    return kind(content=text, id=plain["id"])


def _converse(folder: Path, work: Callable[[Say], None], make: Callable[[int, str], Any]) -> list[str]:
    with SqliteSaver.from_conn_string(str(folder / FILE)) as saver:
        messages: list[Any] = []
        thread = _Thread("talk")

        def say(number: int, text: str) -> None:
            message = make(number, text)
            messages.append(message)
            written = scalars(number)
            saver.put_writes(thread.config, [("messages", [message]), *written.items()], TASK)
            thread.config = saver.put(*thread.next({"messages": messages, **written}))

        thread.config = saver.put(*thread.next({}))
        work(say)
    with reader(folder) as (read, heard):
        return heard(read())


@contextmanager
def reader(folder: Path) -> Iterator[tuple[Callable[[], Any], Callable[[Any], Sequence[str]]]]:
    """How the latest state is read, and what was said in it."""
    with SqliteSaver.from_conn_string(str(folder / FILE)) as saver:
        yield partial(saver.get_tuple, _Thread("talk").config), _heard


def _heard(found: Any) -> list[str]:
    messages = found.checkpoint["channel_values"]["messages"]
    return [one["content"] if isinstance(one, dict) else one.content for one in messages]


def save_small(folder: Path, work: Callable[[Save], None]) -> State:
    """A run with a small state."""
    with SqliteSaver.from_conn_string(str(folder / FILE)) as saver:
        thread = _Thread("small")

        def save(state: State) -> None:
            saver.put_writes(thread.config, list(state.items()), TASK)
            thread.config = saver.put(*thread.next(state))

        thread.config = saver.put(*thread.next({}))
        work(save)
    with SqliteSaver.from_conn_string(str(folder / FILE)) as saver:
        found = saver.get_tuple(thread.config)
    assert found is not None
    return found.checkpoint["channel_values"]


def save_in_tasks(folder: Path, work: Callable[[Burst], None]) -> list[State]:
    """Many runs as tasks of one event loop."""
    import asyncio

    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    threads = [_Thread(f"run-{run}") for run in range(RUNS)]

    async def one(saver: Any, run: int, numbers: range) -> None:
        thread = threads[run]
        for number in numbers:
            state = state_of(run, number)
            await saver.aput_writes(thread.config, list(state.items()), TASK)
            thread.config = await saver.aput(*thread.next(state))

    async def everyone(saver: Any, numbers: range) -> None:
        await asyncio.gather(*(one(saver, run, numbers) for run in range(RUNS)))

    with asyncio.Runner() as runner:
        opening = AsyncSqliteSaver.from_conn_string(str(folder / FILE))
        saver = runner.run(opening.__aenter__())
        for thread in threads:
            thread.config = runner.run(saver.aput(*thread.next({})))
        work(lambda numbers: runner.run(everyone(saver, numbers)))
        runner.run(opening.__aexit__(None, None, None))
    with SqliteSaver.from_conn_string(str(folder / FILE)) as reopened:
        return [reopened.get_tuple(thread.config).checkpoint["channel_values"] for thread in threads]


class _Thread:
    """What LangGraph calls a thread, and where it stands."""

    def __init__(self, name: str) -> None:
        self.config: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        self.step = 0

    def next(self, values: State) -> tuple[Any, ...]:
        """The arguments of the next `put`."""
        self.step += 1
        version = f"{self.step:032}.0"
        versions = dict.fromkeys(values, version)
        checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}
        return self.config, checkpoint, {"source": "loop", "step": self.step, "parents": {}}, versions
