"""A run with effects, and what undoes them; each undo leaves a line in the file outside."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import keepstep
from tests.crash.outside import Outside

RUN = "run"
TO = 1
EFFECTS = ("pay 1", "upload 1", "order 1", "pay 2", "seat 2", "upload 2")
"""Keys of the effects behind the step, oldest first."""
KEPT = "mail 1"
WHOLE = [(KEPT, "kept"), *((key, "undone") for key in reversed(EFFECTS))]
"""What a rollback reports when it has come to its end, however often it was called."""
UNDO_SECONDS_MOST = 0.004


def fill(store: Any) -> None:
    """A finished run, whose second and third step have effects."""
    with store.run(RUN, "w") as run:
        run.using(key="pay 0").once(pay, "pay 0")
        run.save({"n": 1}, "go on", label="before")
        for number in (1, 2):
            for key in (*EFFECTS, KEPT):
                if key.endswith(str(number)):
                    run.using(key=key).once(TOOLS[key.split()[0]], key)
            run.save({"n": 1 + number}, label=f"step {number}")
        run.finish("done")


def pay(what: str) -> str:
    """Something is done."""
    return f"done {what}"


def _tool(name: str) -> Callable[[str], str]:
    def tool(what: str) -> str:
        return pay(what)

    return keepstep.tool(name=name)(tool)


TOOLS = {name: _tool(name) for name in ("pay", "upload", "order", "seat", "mail")}


class Undos:
    """What undoes them."""

    def __init__(self, outside: Outside, *, slow: bool = False) -> None:
        self.outside = outside
        self._chance = random.Random(outside.by) if slow else None

    def given(self, mode: str) -> Mapping[str, Callable[..., Any]]:
        """The undo of each tool."""
        return {
            "pay": self._plain("pay"),
            "upload": keepstep.tool(idempotent=True)(self._plain("upload", once_per_key=True)),
            "order": self._refused_at_first,
            "seat": self._plain("seat") if mode == "sync" else self._awaited,
        }

    def _plain(self, tool: str, *, once_per_key: bool = False) -> Callable[[keepstep.Done], str]:
        def undo(done: keepstep.Done) -> str:
            return self._happen(tool, done, once_per_key=once_per_key)

        return undo

    async def _awaited(self, done: keepstep.Done) -> str:
        return self._happen("seat", done)

    def _refused_at_first(self, done: keepstep.Done) -> str:
        if self.outside.refuse("order", [done.key], done.idempotency_key):
            raise keepstep.NotDone("not today")
        return self._happen("order", done)

    def _happen(self, tool: str, done: keepstep.Done, *, once_per_key: bool = False) -> str:
        assert done.result == f"done {done.key}"
        assert done.args == [done.key]
        self._take()
        self.outside.happen(tool, [done.key], done.idempotency_key, once_per_key=once_per_key)
        self._take()
        return f"undone {done.key}"

    def _take(self) -> None:
        if self._chance is not None:
            time.sleep(self._chance.random() * UNDO_SECONDS_MOST)


class Operator:
    """Calls rollback, and tells it what the file says when it refuses for doubt."""

    def __init__(self, undos: Undos, mode: str) -> None:
        self.undos = undos
        self.mode = mode
        self.undone: list[str] = []
        self.not_undone: list[str] = []

    def go_back(self, store: Any) -> keepstep.RollbackPlan:
        """One call."""
        given, undone, not_undone = self.undos.given(self.mode), self.undone, self.not_undone
        self.undone, self.not_undone = [], []
        try:
            return store.rollback(RUN, TO, keep=[KEPT], undo=given, undone=undone, not_undone=not_undone)
        except keepstep.RollbackRefused as refused:
            [(key, _, _)] = refused.hinders
            is_done = any(line.args == [key] for line in self.undos.outside.lines())
            (self.undone if is_done else self.not_undone).append(key)
            raise


def judge(store: Any, outside: Outside) -> None:
    """Everything was undone once, newest first, and the run is where it would be had nothing happened."""
    lines = outside.lines()
    assert [line.args[0] for line in lines] == list(reversed(EFFECTS))
    look = store.look(RUN)
    assert (look.step, look.next, look.label, look.state) == (1, "go on", "before", {"n": 1})
    assert (look.line, look.result) == (2, None)
    statuses = {one.key: one.status for one in store.effects(RUN)}
    assert statuses == {"pay 0": "returned", KEPT: "returned", **dict.fromkeys(EFFECTS, "undone")}
    with store.run(RUN, "w") as run:
        assert run.save({"n": 2, "line": 2}) == 2
        for key in EFFECTS:
            run.using(key=key).once(TOOLS[key.split()[0]], key)
        run.finish("again")
    history = store.history(RUN, newest_first=False).items
    assert [(one.step, one.line) for one in history] == [(1, 1), (2, 1), (3, 1), (2, 2)]
    assert store.at(RUN, step=2).state == {"n": 2, "line": 2}
    verification = store.verify(RUN)
    assert verification.ok, verification.damage
