"""LangGraph's PostgreSQL checkpointer, called as its graphs call it: one `put_writes` and one `put` per step."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver

from benchmarks.conversation import Say, scalars
from benchmarks.peers.langgraph import TASK, _heard, _message, _Thread
from benchmarks.working import SERVER


def converse(folder: Path, work: Callable[[Say], None]) -> list[str]:
    """The conversation with message objects, as LangGraph's own examples have it."""
    url = (folder / SERVER).read_text()
    messages: list[Any] = []
    thread = _Thread("talk")
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()

        def say(number: int, text: str) -> None:
            message = _message(number, text)
            messages.append(message)
            written = scalars(number)
            saver.put_writes(thread.config, [("messages", [message]), *written.items()], TASK)
            thread.config = saver.put(*thread.next({"messages": messages, **written}))

        thread.config = saver.put(*thread.next({}))
        work(say)
    with PostgresSaver.from_conn_string(url) as saver:
        return list(_heard(saver.get_tuple(_Thread("talk").config)))
