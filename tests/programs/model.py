"""What has to be true of every run, kept as plain values beside the store: what was saved, given and seen."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.programs.language import SECONDS, Action, Ask, Gather, Memo, Nest, Once, Program, Receive, Sleep, places
from tests.programs.world import World

State = dict[str, Any]
FIRST = "run"


@dataclass
class Inherited:
    """What a fork may not do again."""

    salt: int
    """The arguments that it was done with."""
    any_arguments: bool = False


@dataclass
class RunModel:
    """One run."""

    parent: str | None = None
    first: int = 0
    """The step that a fork began at."""
    states: dict[int, list[State]] = field(default_factory=dict)
    """Step → what may stand there; what a save returned for is certain."""
    certain: int = 0
    """The last step of the line of which that is so."""
    seen: dict[tuple[int, str], Any] = field(default_factory=dict)
    """(line, place) → what the program got there."""
    reached: dict[tuple[int, str], int] = field(default_factory=dict)
    """When it came there for the first time."""
    answers: dict[str, list[int]] = field(default_factory=dict)
    """Place → what people answered there."""
    yeses: Counter[str] = field(default_factory=Counter)
    noes: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    """Place → how often a tool was called there."""
    sent: dict[str, list[int]] = field(default_factory=dict)
    received: dict[str, list[int]] = field(default_factory=dict)
    inherited: dict[str, Inherited] = field(default_factory=dict)
    """Place → what was done there before the fork."""
    line: int = 1
    going_to: int = 0
    """The step to which it was told to go back last."""
    undoing: int | None = None
    """The same, while that has begun and was cut off."""
    fresh: bool = False
    salt: int = 0


class Model:
    """All runs of one program."""

    def __init__(self, program: Program, clock: Any) -> None:
        self.program = program
        self.actions: dict[str, Action] = dict(places(program))
        self.runs: dict[str, RunModel] = {FIRST: RunModel()}
        self.world: World
        self._clock = clock
        self._mutex = threading.RLock()

    # --- checkpoints ---------------------------------------------------------------------------------------------

    def entered(self, run_id: str, step: int | None, state: State | None) -> None:
        """Saved is saved: whoever enters finds it."""
        run = self.runs[run_id]
        assert (step or 0) >= run.certain, f"{run_id} is at {step}, and {run.certain} was saved"
        assert state == None if not step else state in run.states[step]  # noqa: E711
        if step:
            self.saved(run_id, step, state or {})

    def saves(self, run_id: str, step: int, state: State) -> None:
        """A save begins."""
        with self._mutex:
            run = self.runs[run_id]
            if step > run.certain:
                run.states.setdefault(step, []).append(state)

    def saved(self, run_id: str, step: int, state: State) -> None:
        """A save has returned."""
        with self._mutex:
            run = self.runs[run_id]
            run.states[step] = [state]
            run.certain = max(step, run.certain)

    def found(self, run_id: str, step: int, state: State) -> None:
        """Somebody has seen what stands there."""
        run = self.runs[run_id]
        assert state in run.states[step], f"{run_id} has {state} at {step}"
        run.states[step] = [state]

    def on_line(self, run_id: str, line: int) -> None:
        """Somebody has seen on which line the run is: on a new one it goes on from an earlier step."""
        run = self.runs[run_id]
        if line > run.line:
            assert line == run.line + 1, f"{run_id} went back twice"
            run.states = {step: states for step, states in run.states.items() if step <= run.going_to}
            run.line, run.certain = line, run.going_to

    def forked(self, run_id: str, parent_id: str, at: int, salt: int | None) -> RunModel:
        """A child begins where its parent was."""
        [state] = self.runs[parent_id].states[at]
        if salt is not None:
            state = {**state, "salt": salt}
        self.runs[run_id] = RunModel(parent_id, at, {at: [state]}, certain=at, salt=state["salt"])
        return self.runs[run_id]

    def family(self, run_id: str | None) -> list[RunModel]:
        """A run and those that it descends from."""
        found: list[RunModel] = []
        while run_id is not None:
            found.append(self.runs[run_id])
            run_id = found[-1].parent
        return found

    # --- what a program gets -------------------------------------------------------------------------------------

    def reaches(self, run_id: str, line: int, at: str) -> None:
        """The program has come to a place."""
        with self._mutex:
            self.runs[run_id].reached.setdefault((line, at), self._clock.now_us())

    def see(self, run_id: str, line: int, at: str, action: Action, value: Any) -> None:
        """The program has got something: it can be right, and it is what whoever was here before got."""
        with self._mutex:
            run = self.runs[run_id]
            before = run.seen.get((line, at))
            if before == value:
                return
            assert before is None or _may_change(action, before), f"{run_id} got {value!r} at {at}, before {before!r}"
            self._check(run_id, line, at, action, value)
            run.seen[line, at] = value

    def _check(self, run_id: str, line: int, at: str, action: Action, value: Any) -> None:
        run = self.runs[run_id]
        match action:
            case Memo(prompt):
                assert value.startswith(f"thought {prompt} #")
            case Once() | Nest():
                self._check_result(run_id, at, action, value)
            case Ask():
                self._check_answer(run, line, at, action, value)
            case Sleep():
                assert self._has_passed(run, line, at)
            case Receive(name, hurried):
                if value == "timed out":
                    assert hurried
                    assert self._has_passed(run, line, at)
                    return
                self._check_message(run, name, value)
            case Gather(branches):
                assert value == [run.seen[line, f"{at}.{index}"] for index in range(len(branches))]

    def _check_result(self, run_id: str, at: str, action: Once | Nest, value: Any) -> None:
        """A result is of something that happened at this place, here or before the fork, and still stands."""
        family = self.family(run_id)
        if value == "rejected":
            assert any(run.noes[at] for run in family)
            return
        happening = self.world.numbered(int(value.partition("#")[2]))
        call = happening.call
        assert (happening.result, call.deed.at) == (value, at)
        assert call.tool == (action.tool if isinstance(action, Once) else "book")
        if call.deed.run_id == run_id:
            assert happening.undone is None, f"{run_id} got {value!r}, which was undone"
        elif call.tool != "upload":  # of which parent and child in doubt may make the same
            assert any(self.runs[call.deed.run_id] is one for one in family)
            assert not self.runs[run_id].fresh or call.deed.run_id == run_id

    def _check_message(self, run: RunModel, name: str, value: int) -> None:
        """Messages come once and in order; one that was taken before a crash is lost with its line."""
        received = run.received.setdefault(name, [])
        left = [one for one in run.sent[name] if one not in received]
        assert value in left[: run.line], f"{value} is not the next of {left}"
        assert value > max(received, default=0)
        received.append(value)

    def _check_answer(self, run: RunModel, line: int, at: str, action: Ask, value: Any) -> None:
        """An answer is one that was given here, and is used once; without one, the time has passed."""
        if value in ("expired", {"value": 0}):
            assert action.ends == ("with an error" if value == "expired" else "with a default")
            lines = [one for one, place in run.reached if place == at and (action.named or one == line)]
            assert any(self._has_passed(run, one, at) for one in lines)
            return
        assert value["value"] in run.answers[at]
        others = [one for (_, place), one in run.seen.items() if place == at and one == value]
        assert action.named or not others, f"the answer {value} was used on two lines"

    def _has_passed(self, run: RunModel, line: int, at: str) -> bool:
        return self._clock.now_us() >= run.reached[line, at] + int(SECONDS * 1e6)


def _may_change(action: Action, before: Any) -> bool:
    """Whether something else may be got at a place: after a no to calling again, when the first call had happened."""
    return isinstance(action, Gather) or (before == "rejected" and isinstance(action, Once) and action.tool == "upload")
