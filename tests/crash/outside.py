"""The world outside of a store, the judge of the effect tests: a file with one synced line per thing that happened."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import keepstep
from keepstep.testing import SimulatedCrash
from keepstep.testing.faults import When


class Line(NamedTuple):
    """One thing that happened."""

    tool: str
    args: list[Any]
    key: str | None
    """The idempotency key it came with; None of a memo."""
    by: int
    """Number of the process that did it."""
    refused: bool = False
    """It was asked for, and did not happen."""


@dataclass
class Strike:
    """What befalls a process inside one of its calls: which (from 1), on which side of the line, and how."""

    at: int
    when: When
    how: Literal["die", "interrupt", "raise"]
    struck: bool = False


@dataclass
class Outside:
    """What a process sees of the world outside."""

    path: Path
    by: int = 0
    strike: Strike | None = None
    die: Callable[[], None] = lambda: None
    """Makes the process dead to its store."""
    calls: int = 0
    dead: bool = False
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def happen(self, tool: str, args: list[Any], key: str | None, *, once_per_key: bool = False) -> None:
        """Something happens; the provider of some tools does it only once per idempotency key."""
        number = self._arrive("before")
        if not (once_per_key and self.find(key)):
            self._write(Line(tool, args, key, self.by))
        self._befall(number, "after")

    def refuse(self, tool: str, args: list[Any], key: str | None) -> bool:
        """Whether this is refused: what comes for the first time is."""
        if any(line.refused and (line.tool, line.args) == (tool, args) for line in self.everything()):
            return False
        number = self._arrive("before")
        self._write(Line(tool, args, key, self.by, refused=True))
        self._befall(number, "after")
        return True

    def find(self, key: str | None) -> Line | None:
        """What happened with this idempotency key."""
        return next((line for line in self.lines() if line.key == key), None)

    def lines(self) -> list[Line]:
        """What happened, in order."""
        return [line for line in self.everything() if not line.refused]

    def everything(self) -> list[Line]:
        """The same, with what was refused."""
        if not self.path.exists():
            return []
        *whole, rest = self.path.read_bytes().split(b"\n")
        assert not rest, "a line is appended in one piece"
        return [Line(*json.loads(line)) for line in whole]

    def _write(self, line: Line) -> None:
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, json.dumps(line).encode() + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)

    def _arrive(self, when: When) -> int:
        with self._mutex:
            self.calls += 1
            number = self.calls
        self._befall(number, when)
        return number

    def _befall(self, number: int, when: When) -> None:
        if self.dead:
            raise SimulatedCrash
        strike = self.strike
        if strike is None or (number, when) != (strike.at, strike.when):
            return
        strike.struck = True
        if strike.how == "raise":
            raise TimeoutError("no reply, because the test wants it")
        if strike.how == "die":
            self.dead = True
            self.die()
        raise SimulatedCrash


def result_of(tool: str, args: list[Any]) -> str:
    """What a tool returns: a function of its arguments, as a run that was cut off shall end like any other."""
    return f"{tool} {args}"


class Tools:
    """What an agent can do to the world outside."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside

    def model(self, prompt: str) -> str:
        """Think; for memo."""
        self.outside.happen("model", [prompt], None)
        return result_of("model", [prompt])

    async def search(self, text: str) -> str:
        """The same as a coroutine."""
        return self.model(text)

    def pay(self, who: str, amount: int) -> str:
        """Must not repeat."""
        return self.do("pay", who, amount)

    def mail(self, who: str) -> str:
        """Must not repeat."""
        return self.do("mail", who)

    async def reserve(self, what: str) -> str:
        """Must not repeat."""
        return self.do("reserve", what)

    def upload(self, name: str) -> str:
        """May be called again with the same idempotency key."""
        return self.do("upload", name, once_per_key=True)

    def transfer(self, who: str) -> str:
        """Can be asked for: see `look_for`."""
        return self.do("transfer", who)

    def order(self, what: str) -> str:
        """Refused at first."""
        if self.outside.refuse("order", [what], keepstep.effect().idempotency_key):
            raise keepstep.NotDone("not today")
        return self.do("order", what)

    def do(self, tool: str, *args: Any, once_per_key: bool = False) -> str:
        """What every tool does."""
        key = keepstep.effect().idempotency_key
        self.outside.happen(tool, list(args), key, once_per_key=once_per_key)
        return result_of(tool, list(args))

    def look_for(self, doubt: keepstep.Doubt) -> Any:
        """Whether a call happened: `reconcile` of `transfer`."""
        line = self.outside.find(doubt.idempotency_key)
        return keepstep.NotDone if line is None else keepstep.Happened(result_of(line.tool, line.args))


def settle(store: keepstep.Store, run_id: str, doubt: BaseException | None, outside: Outside) -> None:
    """A person looks outside, and tells what happened; of a call inside a call, both."""
    while doubt is not None:
        if isinstance(doubt, keepstep.EffectInDoubt):
            _settle(store, run_id, doubt.key, outside)
        doubt = doubt.__cause__


def _settle(store: keepstep.Store, run_id: str, key: str, outside: Outside) -> None:
    (effect,) = [one for one in store.effects(run_id) if one.key == key]
    assert effect.status in ("began", "doubted")
    line = outside.find(effect.idempotency_key)
    result = None if line is None else result_of(line.tool, line.args)
    store.settle(run_id, key, happened=line is not None, result=result, by="a person")
