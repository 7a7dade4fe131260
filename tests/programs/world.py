"""The world outside: it outlives every process, counts what happens, and lets processes meet with their fates."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import keepstep
from keepstep.testing import SimulatedCrash
from tests.programs.story import Fate, Who

FINE = Fate(happens=True, then="returns")


class NoReply(Exception):
    """A time-out: whether it happened, nobody knows."""


class Interrupt(BaseException):
    """Ctrl-C, so to say."""


class Deed(NamedTuple):
    """Something that a run does once, however often it goes back."""

    run_id: str
    at: str


class Thought(NamedTuple):
    """Which of its thoughts a run thinks."""

    run_id: str
    epoch: int
    step: int
    line: int
    prompt: int


class Call(NamedTuple):
    """What arrives at a tool."""

    deed: Deed
    tool: str
    args: tuple[Any, ...]
    effect: keepstep.Effect

    @property
    def key(self) -> str:
        """Its idempotency key, which a fork has in common with its parent when it makes a call of it again."""
        return self.effect.idempotency_key

    @property
    def begun(self) -> tuple[str, str, str, int]:
        """For which beginning of which effect it is made."""
        return self.deed.run_id, self.effect.key, self.key, self.effect.attempt


@dataclass
class Happening:
    """Something that happened."""

    number: int
    call: Call
    undone: str | None = None
    """The idempotency key of what undid it."""

    @property
    def result(self) -> str:
        """What the tool returns of it; no two are equal."""
        return f"{self.call.tool} {self.call.args} #{self.number}"


class Rules(Protocol):
    """What is looked at when something begins; raises what is wrong."""

    def may_think(self, thought: Thought) -> None: ...
    def may_call(self, call: Call) -> None: ...
    def may_undo(self, done: keepstep.Done) -> None: ...


class Nature(Protocol):
    """What the world can do to processes."""

    def is_dead(self, who: Who) -> bool: ...
    def die(self, who: Who) -> None: ...
    def freeze(self, who: Who, run_id: str) -> None: ...
    def cancel(self, run_id: str) -> None: ...


@dataclass
class World:
    """What happened, and what will."""

    rules: Rules
    nature: Nature
    happenings: list[Happening] = field(default_factory=list)
    thoughts: int = 0
    calls: Counter[tuple[str, str, str, int]] = field(default_factory=Counter)
    """How often a tool was called for a beginning of an effect."""
    begun_by: dict[str, str] = field(default_factory=dict)
    """Idempotency key → the key that was first called with it."""
    consents: Counter[Deed] = field(default_factory=Counter)
    """How often somebody wanted a deed to be done again, whatever had happened."""
    fates: dict[Who, deque[Fate]] = field(default_factory=dict)
    broken: list[BaseException] = field(default_factory=list)
    """Rules that did not hold; an exception inside a tool would only be a doubt."""
    still: set[Who] = field(default_factory=set)
    """Processes that stand still: none of their threads begins anything."""
    _moving: threading.Condition = field(default_factory=threading.Condition)

    def find(self, key: str | None) -> Happening | None:
        """What happened with this idempotency key."""
        return next((one for one in self.happenings if one.call.key == key), None)

    def numbered(self, number: int) -> Happening:
        """What happened as the n-th."""
        return self.happenings[number - 1]

    def is_shared(self, key: str) -> bool:
        """Whether a parent and its fork both made this call: a thing that happens once, and that each may undo."""
        return len({run_id for run_id, _, one, _ in self.calls if one == key}) > 1

    def standing(self, deed: Deed) -> list[Happening]:
        """What happened of a deed, and was not undone."""
        return [one for one in self.happenings if one.call.deed == deed and one.undone is None]

    # --- what tools do -------------------------------------------------------------------------------------------

    def think(self, who: Who, thought: Thought) -> str:
        """Safe to repeat, and never the same twice."""
        fate = self._arrive(who, lambda: self.rules.may_think(thought), lambda fate: None)
        self._befall(who, thought.run_id, fate)
        if fate.then == "refuses":
            raise keepstep.NotDone("not today")
        with self._moving:
            self.thoughts += 1
            return f"thought {thought.prompt} #{self.thoughts}"

    def call(self, who: Who, call: Call) -> str:
        """Something happens; an upload only once per idempotency key."""
        found: list[Happening] = []
        fate = self._arrive(who, lambda: self._check(call), lambda fate: self._happen(call, found, fate))
        self._befall(who, call.deed.run_id, fate)
        if not found:
            raise keepstep.NotDone("not today")
        return found[0].result  # also when it had happened before: nobody may say then that it had not

    def undo(self, who: Who, done: keepstep.Done) -> None:
        """Something is undone."""
        fate = self._arrive(who, lambda: self.rules.may_undo(done), lambda fate: self._undo(done, fate))
        self._befall(who, done.run_id, fate)
        if self._undone(done).undone is None:
            raise keepstep.NotDone("not today")

    def look_for(self, doubt: keepstep.Doubt) -> Any:
        """Whether a call happened: `reconcile` of a transfer."""
        found = self.find(doubt.idempotency_key)
        return keepstep.NotDone if found is None else keepstep.Happened(found.result)

    # --- processes -----------------------------------------------------------------------------------------------

    def stand_still(self, who: Who) -> bool:
        """A process stops; False when it has stopped already, or the other one has."""
        with self._moving:
            if self.still:
                return False
            self.still.add(who)
            return True

    def move(self, who: Who) -> None:
        """It goes on."""
        with self._moving:
            self.still.discard(who)
            self._moving.notify_all()

    # --- inside --------------------------------------------------------------------------------------------------

    def _arrive(self, who: Who, check: Callable[[], None], happen: Callable[[Fate], None]) -> Fate:
        """Whoever stood still on the way comes too late, and is not served."""
        with self._moving:
            if who in self.still:
                while who in self.still:
                    self._moving.wait()
                raise keepstep.NotDone("too late")
            if self.nature.is_dead(who):
                raise SimulatedCrash
            try:
                check()
            except BaseException as error:
                self.broken.append(error)
                raise
            mine = self.fates.get(who)
            fate = mine.popleft() if mine else FINE
            happen(fate)
            return fate

    def _check(self, call: Call) -> None:
        self.rules.may_call(call)
        self.calls[call.begun] += 1
        self.begun_by.setdefault(call.key, call.effect.key)

    def _happen(self, call: Call, found: list[Happening], fate: Fate) -> None:
        before = self.find(call.key) if call.tool == "upload" else None
        if before is not None:
            found.append(before)
        elif _happens(fate):
            self.happenings.append(Happening(len(self.happenings) + 1, call))
            found.append(self.happenings[-1])

    def _undo(self, done: keepstep.Done, fate: Fate) -> None:
        if _happens(fate):
            self._undone(done).undone = done.idempotency_key

    def _undone(self, done: keepstep.Done) -> Happening:
        happening = self.find(done.effect_idempotency_key)
        assert happening is not None, "the rules have looked"
        return happening

    def _befall(self, who: Who, run_id: str, fate: Fate) -> None:
        if fate.then == "dies":
            self.nature.die(who)
            raise SimulatedCrash
        if fate.then == "is interrupted":
            raise Interrupt
        if fate.then == "times out":
            raise NoReply
        if fate.then == "freezes":
            self.nature.freeze(who, run_id)
        if fate.then == "is cancelled":
            self.nature.cancel(run_id)


def _happens(fate: Fate) -> bool:
    return fate.then == "returns" or (fate.happens and fate.then != "refuses")
