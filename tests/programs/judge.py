"""What has to be true when a tool is called: the judge looks at the ledger from outside, before anything happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keepstep
from tests.programs.language import Memo, Once
from tests.programs.model import Inherited, Model
from tests.programs.world import Call, Thought, World


class Judge:
    """Says whether a call may be made. It is asked while the call stands at the door."""

    def __init__(self, store: keepstep.Store, model: Model) -> None:
        self._store = store
        self._model = model
        self.world: World

    # --- a memo --------------------------------------------------------------------------------------------------

    def may_think(self, thought: Thought) -> None:
        """A thought that is recorded is not thought again, but by a late worker, who had looked before."""
        if self._store.look(thought.run_id).epoch > thought.epoch:
            return
        wanted = [
            at
            for at, one in self._model.actions.items()
            if one == Memo(thought.prompt) and at.startswith(f"{thought.step}.")
        ]
        recorded = [
            one
            for one in self._store.effects(thought.run_id)
            if one.is_memo and (one.step, one.line) == (thought.step, thought.line) and _thinks(one, thought.prompt)
        ]
        assert len(recorded) < len(wanted), f"{thought} was thought again"

    # --- a call --------------------------------------------------------------------------------------------------

    def may_call(self, call: Call) -> None:
        """A call begins durably before it is made, once, and not again without consent."""
        self._is_recorded(call)
        self._is_no_repetition(call)
        self._is_in_no_doubt(call)
        self._has_consent(call)

    def _is_recorded(self, call: Call) -> None:
        [line] = [one for one in self._effects(call) if one.key == call.effect.key]
        recorded = (line.status, line.idempotency_key, line.attempt, line.epoch)
        assert recorded == ("began", call.key, call.effect.attempt, call.effect.epoch), f"{call} has not begun: {line}"
        assert not self.world.calls[call.begun], f"{call} was called twice"

    def _is_no_repetition(self, call: Call) -> None:
        if call.tool == "upload" and self.world.find(call.key):
            return
        standing = self.world.standing(call.deed)
        assert len(standing) <= self.world.consents[call.deed], f"{call} is done again: {standing}"

    def _is_in_no_doubt(self, call: Call) -> None:
        """The same call under another key is not in doubt."""
        if call.tool == "upload":
            return
        for one in self._effects(call):
            begun = self.world.begun_by.get(one.idempotency_key or "")
            is_same = one.tool.endswith(call.tool) and one.arguments == [[*call.args[:2]], {}]
            if one.key != call.effect.key and begun == one.key and is_same:
                assert one.status != "doubted", f"{call} is in doubt: {one}"

    def _has_consent(self, call: Call) -> None:
        run, at = self._model.runs[call.deed.run_id], call.deed.at
        action = self._model.actions[at]
        inherited = run.inherited.get(at)
        if inherited is not None:
            is_same = inherited.any_arguments or inherited.salt == call.args[1]
            assert not is_same, f"{call} was done before the fork"
            assert run.yeses[at], f"{call} was not approved"
        if call.tool != "upload" and isinstance(action, Once) and action.approve:
            assert run.calls[at] < run.yeses[at], f"{call} was not approved again"
        run.calls[at] += 1

    def _effects(self, call: Call) -> list[keepstep.EffectLook]:
        return self._store.effects(call.deed.run_id)

    # --- an undo -------------------------------------------------------------------------------------------------

    def may_undo(self, done: keepstep.Done) -> None:
        """An undo begins durably before it is made, of something that happened and was not undone."""
        [line] = [one for one in self._store.effects(done.run_id) if one.key == done.key]
        assert line.status == "undo_began", f"{done} has not begun: {line}"
        happening = self.world.find(done.effect_idempotency_key)
        assert happening is not None, f"{done} undoes nothing"
        is_shared = self.world.is_shared(done.effect_idempotency_key)
        assert happening.undone is None or is_shared, f"{done} is undone again"
        assert done.result == happening.result

    # --- a fork --------------------------------------------------------------------------------------------------

    def inherited(self, parent_id: str, effects: str) -> dict[str, Inherited]:
        """What a child of this run may not do again: what was done, on whatever line."""
        if effects == "fresh":
            return {}
        parent = self._model.runs[parent_id]
        found: dict[str, Inherited] = {}
        for at, salt in self._done(parent_id):
            before = parent.inherited.get(at)
            found[at] = Inherited(salt, effects == "reuse" or (before is not None and before.any_arguments))
        return found

    def _done(self, run_id: str) -> Iterator[tuple[str, int]]:
        for one in self._store.effects(run_id):
            if not one.is_memo and one.result is not None and one.arguments:
                at, salt = one.arguments[0][:2]
                yield at, salt

    # --- afterwards ----------------------------------------------------------------------------------------------

    def check(self, run_id: str) -> None:
        """What the ledger says was undone was undone, and what it says stands was not."""
        for one in self._store.effects(run_id):
            happening = self.world.find(one.idempotency_key)
            key = one.idempotency_key or ""
            if happening is None or self.world.begun_by[key] != one.key or self.world.is_shared(key):
                continue
            if one.status == "undone":
                assert happening.undone, f"{one} was not undone"
            if one.status == "returned" and happening.call.deed.run_id == run_id:
                assert not happening.undone, f"{one} was undone"


def _thinks(effect: keepstep.EffectLook, prompt: int) -> bool:
    result: Any = effect.result
    return result.startswith(f"thought {prompt} #")
