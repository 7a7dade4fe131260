"""What a holder does under one claim: its calls under way, and the keys that they got."""

from __future__ import annotations

from collections.abc import Generator
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from keepstep.engine.calls import Call
from keepstep.engine.keys import Keys, Numbered, Place, digest, key_of_name
from keepstep.errors import Cancelled, EffectInFlight, KeyNeeded, Pause
from keepstep.log.fold import Fields


class Standing(NamedTuple):
    """Where a call stands in the ledger."""

    key: bytes
    name: str
    """The key as people read it."""


class Work:
    """The calls of one claim."""

    def __init__(self, run_id: str, mutex: AbstractContextManager[object]) -> None:
        self._run_id = run_id
        self._mutex = mutex
        self._keys = Keys()
        self._flying: set[bytes] = set()
        """What calls under way are known by, so that an equal one is refused."""
        self._calls = 0
        """How many calls that must not repeat are under way,"""
        self._resting = 0
        """and how many of them only wait for the run to pause."""
        self.latch: Pause | Cancelled | None = None
        """Set once the run has to wait, or to end: every later call raises it."""

    def stop(self, cancelled: Cancelled) -> None:
        """Somebody asked for the run to be cancelled."""
        self.latch = self.latch or cancelled

    def begin_again(self) -> None:
        """The code of this step is carried out once more: its calls are numbered from the first one."""
        with self._mutex:
            self._keys = Keys()

    @property
    def flying(self) -> bool:
        """Whether anything is under way that will come to an end by itself."""
        return self._calls > self._resting

    def halt(self) -> Pause | Cancelled:
        """From now on every call raises this."""
        with self._mutex:
            self.latch = self.latch or Pause(self._run_id)
            return self.latch

    @property
    def place(self) -> Place:
        """Where in the user's code a call is made now: inside which effect of this run, in which branch."""
        return self._keys.place

    def inside(self, key: bytes) -> Place:
        """The place inside an effect that starts."""
        with self._mutex:
            return self._keys.inside(key)

    @contextmanager
    def resting(self, count: int) -> Generator[None]:
        """While so many calls, one inside the other, only wait for the run to pause."""
        with self._mutex:
            self._resting += count
        try:
            yield
        finally:
            with self._mutex:
                self._resting -= count

    @property
    def known(self) -> AbstractSet[bytes]:
        """Keys of the calls under way here, among other things that these are known by."""
        return self._flying

    @contextmanager
    def memo(self, row: Fields, call: Call) -> Generator[bytes]:
        """While a call that is safe to repeat is under way; gives its key."""
        with self._mutex:
            numbered = self._keys.numbered(row, "memo", call.tool, call.arguments)
        try:
            yield numbered.key
        except BaseException:
            self._raised(numbered)
            raise

    def ask(self, row: Fields, prompt: str, name: str | None) -> bytes:
        """The key of a question: the user's own, or the step, its text, and which of the equal ones it is."""
        with self._mutex:
            if name is not None:
                return digest("ask", self.place.outer, name)
            return self._keys.numbered(row, "ask", prompt)[0]

    def wait(self, row: Fields, kind: str, what: str | int) -> bytes:
        """The key of a sleep or a receive: the step, what is waited for, and which of the equal ones it is."""
        with self._mutex:
            return self._keys.numbered(row, kind, what).key

    def branches(self, row: Fields, count: int) -> list[Place]:
        """Where the calls of each branch of a `gather` stand: numbered in the order of its arguments."""
        with self._mutex:
            number = self._keys.numbered(row, "gather").number
        place = self.place
        return [place._replace(branch=(*place.branch, number, index)) for index in range(count)]

    @contextmanager
    def once(self, row: Fields, call: Call) -> Generator[Standing]:
        """While a call that must not repeat is under way."""
        with self._mutex:
            standing, marks, numbered = self._stand(row, call)
            self._flying |= marks
            self._calls += 1
        try:
            yield standing
        except BaseException:
            self._raised(numbered)
            raise
        finally:
            with self._mutex:
                self._flying -= marks
                self._calls -= 1

    def _raised(self, numbered: Numbered | None) -> None:
        """The next call like it is the same call."""
        if numbered is not None:
            with self._mutex:
                self._keys.raised(numbered)

    def _stand(self, row: Fields, call: Call) -> tuple[Standing, set[bytes], Numbered | None]:
        name = _name(call)
        if name is not None:
            outer = self.place.outer
            key = key_of_name(name, outer)
            if key in self._flying:
                raise EffectInFlight(self._run_id, name, call.shown)
            # Inside another effect the name alone would not find it, or would find another effect of the run.
            return Standing(key, name if outer is None else key.hex()), {key}, None
        base = self._keys.base(row, "once", call.tool)
        if base in self._flying:
            raise KeyNeeded(
                f"{call.tool}() is under way in run {self._run_id!r} already. Calls at the same time need keys: "
                f"run.using(key=...).once({call.tool}, ...); or make them in run.gather(...)."
            )
        numbered = self._keys.numbered(row, "once", call.tool, arguments=call.arguments)
        return Standing(numbered.key, numbered.key.hex()), {numbered.key, base}, numbered


def _name(call: Call) -> str | None:
    if call.policy.key is not None:
        return str(call.policy.key)
    return None if call.tool_key is None else f"{call.tool}:{call.tool_key}"
