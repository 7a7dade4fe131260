"""An agent that carries out a program, as user code would: it goes on from the run's `next`, step by step."""

from __future__ import annotations

from functools import partial
from typing import Any

import keepstep
from tests.programs.language import (
    REVERSIBLE,
    SECONDS,
    Action,
    Ask,
    Gather,
    Memo,
    Nest,
    Once,
    Receive,
    Sleep,
)  # fmt: skip
from tests.programs.model import Model
from tests.programs.story import Who
from tests.programs.world import Call, Deed, NoReply, Thought, World

BOOK = "book"


class Agent:
    """One visit of a worker to a run."""

    def __init__(self, world: World, model: Model, who: Who, run: Any, line: int) -> None:
        self._program = model.program
        self._world = world
        self._model = model
        self._who: Who = who
        self._run = run
        self._line = line
        self._salt = 0

    def carry_out(self) -> None:
        """Go on to the end, or as far as one can."""
        run, model = self._run, self._model
        state = run.state or {"salt": 0, "done": []}
        self._salt = state["salt"]
        for number in range(int(run.next or 0), len(self._program)):
            step = self._program[number]
            values = [self._act(one, f"{number}.{index}") for index, one in enumerate(step)]
            state = {"salt": self._salt, "done": [*state["done"], values]}
            model.saves(run.id, number + 1, state)
            assert run.save(state, str(number + 1)) == number + 1
            model.saved(run.id, number + 1, state)
        run.finish(state["done"])

    # --- what a program can do -----------------------------------------------------------------------------------

    def _act(self, action: Action, at: str) -> Any:
        value = self._value(action, at)
        self._model.see(self._run.id, self._line, at, action, value)
        return value

    def _value(self, action: Action, at: str) -> Any:
        run = self._run
        self._model.reaches(run.id, self._line, at)
        match action:
            case Memo(prompt):
                return self._persist(lambda: run.memo(self.think, prompt))
            case Once():
                return self._once(action, at)
            case Nest(keyed):
                key = f"call {at}" if keyed else None
                return self._persist(lambda: run.using(key=key).once(self.book, at, self._salt))
            case Ask():
                return self._ask(action, at)
            case Sleep():
                run.sleep(SECONDS)
                return "slept"
            case Receive(name, hurried):
                try:
                    return run.receive(name, timeout=SECONDS if hurried else None)
                except keepstep.TimedOut:
                    return "timed out"
            case Gather(branches):
                return run.gather(*(partial(self._act, one, f"{at}.{index}") for index, one in enumerate(branches)))

    def _ask(self, action: Ask, at: str) -> Any:
        said: dict[str, Any] = {"key": f"ask {at}" if action.named else None}
        if action.ends != "never":
            said["expires"] = SECONDS
        if action.ends == "with a default":
            said["default"] = {"value": 0}
        try:
            return self._run.ask(f"question {at}", {"value": int}, **said)
        except keepstep.GateExpired:
            return "expired"

    def _once(self, action: Once, at: str) -> Any:
        key = f"call {at}" if action.keyed else None
        try:
            return self._tool(action, at, key)
        except keepstep.EffectInDoubt:
            if not action.again:
                raise
            return self._tool(action, at, f"call {at} again")

    def _tool(self, action: Once, at: str, key: str | None) -> Any:
        using = self._run.using(
            key=key,
            unsure="raise" if action.raises else "ask",
            approve=f"Do {at}?" if action.approve else None,
            idempotent=action.tool == "upload",
            reconcile=self._world.look_for if action.tool == "transfer" else None,
            undo=self.undo if action.tool in REVERSIBLE else None,
        )
        # What is called inside another has the same arguments in every fork: nobody can be asked there about others.
        salt = 0 if at.count(".") > 1 and isinstance(self._model.actions[at.rpartition(".")[0]], Nest) else self._salt
        return self._persist(lambda: using.once(getattr(self, action.tool), at, salt))

    def _persist(self, call: Any) -> Any:
        """Call again when nothing happened, or nobody knows and the run was told."""
        while True:
            try:
                return call()
            except (keepstep.NotDone, NoReply):
                continue
            except keepstep.Rejected:
                return "rejected"

    # --- tools ---------------------------------------------------------------------------------------------------

    def think(self, prompt: int) -> str:
        """A model."""
        run = self._run
        return self._world.think(self._who, Thought(run.id, run.epoch, run.step or 0, self._line, prompt))

    def pay(self, at: str, salt: int, amount: int = 1) -> str:
        """Nobody knows whether it happened."""
        return self._call("pay", at, salt, amount)

    def mail(self, at: str, salt: int, amount: int = 1) -> str:
        """The same, and it cannot be undone."""
        return self._call("mail", at, salt, amount)

    def upload(self, at: str, salt: int, amount: int = 1) -> str:
        """May be called again with the same idempotency key."""
        return self._call("upload", at, salt, amount)

    def transfer(self, at: str, salt: int, amount: int = 1) -> str:
        """The world can be asked about it."""
        return self._call("transfer", at, salt, amount)

    def book(self, at: str, salt: int, amount: int = 1) -> str:
        """Calls other tools first."""
        action = self._model.actions[at]
        assert isinstance(action, Nest)
        for index, one in enumerate(action.inner):
            self._act(one, f"{at}.{index}")
        return self._call(BOOK, at, salt, amount)

    def undo(self, done: keepstep.Done) -> str:
        """Undoes any of them."""
        self._world.undo(self._who, done)
        return "undone"

    def _call(self, tool: str, at: str, salt: int, amount: int) -> str:
        call = Call(Deed(self._run.id, at), tool, (at, salt, amount), keepstep.effect())
        return self._world.call(self._who, call)
