"""Whatever fails in a run with effects, and whenever: no effect happens twice, and the run ends as if nothing had been.

The judge is a file outside of the store, in which everything that happens leaves a line. Whoever goes on after a crash
settles what is in doubt by what the file says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest

import keepstep
from keepstep.api.places import store_for
from keepstep.runtime.inline import drive
from keepstep.testing import FaultyStore, SimulatedCrash
from keepstep.testing.faults import How, When
from tests.crash.effect_programs import PROGRAMS, RUN, Program, carry_out
from tests.crash.outside import Line, Outside, Strike, Tools, result_of, settle
from tests.crash.points import at_every_point
from tests.places import Place

FAULTS: dict[str, tuple[When, How]] = {
    "crash before": ("before", "crash"),
    "crash after": ("after", "crash"),
    "error before": ("before", "fail"),
    "lost reply": ("after", "fail"),
}
STRIKES = [f"{how} {when}" for how in ("die", "interrupt", "raise") for when in ("before", "after")]
PLACES = [f"{kind}-{mode}" for kind in ("memory", "dir", "sqlite", "postgres") for mode in ("sync", "async")]
QUICK_FAULTS = {
    "memory-sync": set(FAULTS),
    "dir-sync": {"crash after"},
    "sqlite-sync": {"crash after"},
    "memory-async": {"crash after"},
    "sqlite-async": {"crash before"},
    "postgres-async": {"lost reply"},
}
QUICK_STRIKES = {
    "memory-sync": set(STRIKES),
    "dir-sync": {"die after"},
    "sqlite-sync": {"die before"},
    "memory-async": {"interrupt before", "interrupt after"},
    "sqlite-async": {"die after"},
    "postgres-sync": {"die before"},
}
VISITS_MAX = 20
"""A run that is not at its end after so many is going round in circles."""


def _cases(faults: Iterable[str], quick: dict[str, set[str]]) -> list[Any]:
    """Every store in every way; what takes longer than it tells is left to the soak tests."""
    return [
        pytest.param(where, program, fault, marks=() if fault in quick.get(where, ()) else pytest.mark.soak)
        for where, fault, program in product(PLACES, faults, PROGRAMS)
    ]


@pytest.mark.parametrize(("where", "program", "fault"), _cases(FAULTS, QUICK_FAULTS))
def test_whatever_operation_of_the_store_fails_no_effect_happens_twice(where, program, fault, folder):
    when, how = FAULTS[fault]

    def go(place: Place, at: int) -> bool:
        faulty = FaultyStore(store_for(place.url, place.clock, read_only=False), at, when, how)
        judged = Judged(place, PROGRAMS[program], faulty, Outside(place.folder / "outside"))
        judged.to_the_end()
        return faulty.operations >= at

    at_every_point(where, folder, go, least=14)


@pytest.mark.parametrize(("where", "program", "fault"), _cases(STRIKES, QUICK_STRIKES))
def test_whatever_befalls_a_process_inside_a_call_no_effect_happens_twice(where, program, fault, folder):
    how, when = fault.split()

    def go(place: Place, at: int) -> bool:
        faulty = FaultyStore(store_for(place.url, place.clock, read_only=False))
        strike = Strike(at, when, how)  # type: ignore[arg-type]
        judged = Judged(place, PROGRAMS[program], faulty, Outside(place.folder / "outside", strike=strike))
        judged.to_the_end()
        return strike.struck

    at_every_point(where, folder, go, least=6)


@dataclass
class Judged:
    """One run of a program, whose first process has bad luck, from its beginning to its end."""

    place: Place
    program: Program
    faulty: FaultyStore
    outside: Outside
    recorded: dict[str, int] = field(default_factory=dict)
    """Prompt → how often the model had been asked, when its answer was in the ledger."""

    def to_the_end(self) -> None:
        """Let process after process go on, until the run has ended; then judge."""
        self.outside.die = self._die
        watcher = self.place.open()
        store = self.place.open(cast(Any, self.faulty))
        outside = self.outside
        for visit in range(VISITS_MAX):
            try:
                carry_out(store, RUN, self.program, Tools(outside))
            except keepstep.RunFinished:
                break
            except keepstep.EffectInDoubt as doubt:
                self._note_answers(watcher)
                settle(watcher, RUN, doubt, outside)
            except SimulatedCrash:
                self._note_answers(watcher)
                if self.faulty.dead:
                    self._bury(store)
                    store, outside = self.place.open(), Outside(outside.path, by=visit + 1)
            except (keepstep.StoreError, TimeoutError):
                self._note_answers(watcher)
            else:
                break
        self._judge(watcher)
        self.place.kill(store)

    def _die(self) -> None:
        """The process dies inside a tool: its store does nothing more. What is open is closed when it is buried."""
        self.faulty.dead = True

    def _bury(self, store: keepstep.Store) -> None:
        self.place.kill(store)
        drive(self.faulty.store.close())

    def _note_answers(self, watcher: keepstep.Store) -> None:
        asked = Counter(line.args[0] for line in self.outside.lines() if line.tool == "model")
        with suppress(keepstep.NoSuchRun):
            for effect in watcher.effects(RUN):
                if effect.is_memo:
                    (prompt,) = [one for one in asked if effect.result == result_of("model", [one])]
                    self.recorded.setdefault(prompt, asked[prompt])

    def _judge(self, watcher: keepstep.Store) -> None:
        look = watcher.look(RUN)
        assert (look.status, look.state, look.result) == undisturbed(self.program)
        verification = watcher.verify(RUN)
        assert verification.ok, verification.damage
        lines = self.outside.lines()
        asked = Counter(line.args[0] for line in lines if line.tool == "model")
        assert {prompt: asked[prompt] for prompt in self.recorded} == self.recorded
        judge_effects(watcher, RUN, lines)


def judge_effects(store: keepstep.Store, run_id: str, lines: list[Line]) -> None:
    """Nothing happened twice, and the ledger has what happened."""
    happened = [line for line in lines if line.key is not None]
    assert Counter(line.key for line in happened).most_common(1)[0][1] == 1
    assert Counter((line.tool, str(line.args)) for line in happened).most_common(1)[0][1] == 1
    effects = [one for one in store.effects(run_id) if not one.is_memo]
    assert {one.status for one in effects} == {"returned"}
    known = {(one.idempotency_key, str(one.arguments), one.result) for one in effects}
    assert len(known) == len(effects)
    for line in happened:
        parts = line.args if line.tool != "book" else line.args[:1]
        assert (line.key, str([parts, {}]), result_of(line.tool, line.args)) in known
    assert len(known) == len(happened)
    answers = {one.result for one in store.effects(run_id) if one.is_memo}
    assert answers == {result_of(line.tool, line.args) for line in lines if line.key is None}


_ends: dict[Program, Any] = {}


def undisturbed(program: Program) -> Any:
    """How the run of a program ends when nothing happens to it."""
    if program not in _ends:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            place = Place("memory", "sync", Path(folder))
            store = place.open()
            outside = Outside(place.folder / "outside")
            carry_out(store, RUN, program, Tools(outside))
            look = store.look(RUN)
            asked = Counter(line.args[0] for line in outside.lines() if line.tool == "model")
            assert set(asked.values()) == {1}
            judge_effects(store, RUN, outside.lines())
            _ends[program] = (look.status, look.state, look.result)
            place.close()
    return _ends[program]
