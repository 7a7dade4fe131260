"""A state of a class of one's own, and what happens when that class changes.

`state=` says which class the state is of; it and the classes in its annotations are registered by that. A run saved
by older code has an older `version`; `lift` says how its fields become those of the version after it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keepstep


@dataclass
class Message:
    """One turn of the conversation."""

    role: str
    text: str


@dataclass
class Chat:
    """The state of version 1."""

    messages: list[Message] = field(default_factory=list[Message])
    user: str = ""


@dataclass
class Conversation:
    """The state of version 2: it has another name, and the user has become a list."""

    messages: list[Message] = field(default_factory=list[Message])
    users: list[str] = field(default_factory=list[str])


def lift_1(fields: dict[str, Any]) -> dict[str, Any]:
    """From the fields of version 1 to those of version 2."""
    user = fields.pop("user")
    return {**fields, "users": [user]}


def main() -> None:
    """Save with the old code, go on with the new."""
    with tempfile.TemporaryDirectory() as folder, keepstep.open(Path(folder) / "runs.db") as store:
        with store.run("chat-1", workflow="chat", state=Chat) as run:
            run.save(Chat([Message("user", "Hello")], user="ada"))

        with store.run("chat-1", state=Conversation, version=2, lift={1: lift_1}) as run:
            state = run.state
            state.users.append("bob")
            state.messages.append(Message("assistant", "Good morning"))
            run.save(state)

        now = store.at("chat-1", state=Conversation, version=2)
        print(f"version {now.version}, a {type(now.state).__name__} of {now.state.users}")
        for message in now.state.messages:
            print(f"  {message}")

        print("without the class it can still be read:", store.at("chat-1").state.value["users"])


if __name__ == "__main__":
    main()
