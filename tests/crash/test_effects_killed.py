"""Processes are killed at random moments of a run with effects: the next goes on at once, and nothing is repeated."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import keepstep
from tests.crash.effect_programs import carry_out
from tests.crash.effect_workers import go_on, stick_in_the_second, two_calls, two_calls_at_once, work
from tests.crash.outside import Outside, Tools, settle
from tests.crash.processes import Worker
from tests.crash.saving import LEASE
from tests.crash.test_effects_crash import judge_effects

FOR_EVER = 1 << 40


class Killing:
    """One run, carried by one process after another, each of which is killed."""

    def __init__(self, url: str, run_id: str, path: Path, seed: int) -> None:
        self.url = url
        self.run_id = run_id
        self.outside = Outside(path)
        self.chance = random.Random(seed)
        self.number = 0
        """Of the process."""
        self.answered: dict[str, int] = {}
        """Prompt → the process that told first that the answer was recorded."""
        self.saved = 0

    def kill_many(self, kills: int) -> None:
        """Kill so many processes."""
        for self.number in range(1, kills + 1):
            mode = self.chance.choice(("sync", "sync", "async"))
            args = (self.url, mode, self.run_id, self.outside.path, self.number, FOR_EVER)
            with Worker(work, *args) as worker:
                assert worker.hear() == ("at", keepstep.__file__), "the process imported another keepstep"
                for _ in range(self.chance.choice((0, 1, 2, 4))):
                    self._take(worker.hear())
                time.sleep(self.chance.random() * self.chance.choice((0.003, 0.01, 0.03)))  # the moment is the test
                for told in worker.kill():
                    self._take(told)

    def _take(self, told: tuple[str, str | int] | None) -> None:
        assert told is not None, "a worker ended by itself"
        kind, what = told
        if kind == "answer":
            self.answered.setdefault(str(what), self.number)
        elif kind == "saved":
            assert what == self.saved + 1 or what == self.saved + 2  # one may not have been told
            self.saved = int(what)

    def judge(self) -> None:
        """Carry the run to its end here, and see that everything happened once."""
        self.number += 1
        outside = Outside(self.outside.path, by=self.number)
        with keepstep.open(self.url, lease=LEASE) as store:
            assert (store.load(self.run_id).step if self.saved else 0) >= self.saved
            steps = (store.look(self.run_id).step or 0) + 1
            go_on(lambda *told: self._take(told), store, self.run_id, outside, steps)
            look = store.look(self.run_id)
            assert (look.status, look.state, look.result) == ("finished", steps, steps)
            verification = store.verify(self.run_id)
            assert verification.ok, verification.damage
            lines = outside.lines()
            judge_effects(store, self.run_id, lines)
        assert len([line for line in lines if line.key is not None]) == 8 * steps
        for prompt, number in self.answered.items():
            asked_by = [line.by for line in lines if line.args == [prompt]]
            assert max(asked_by) <= number, "a recorded answer was asked for again"
            assert len(set(asked_by)) == len(asked_by)


def _kill_many(kind: str, folder: Path, *, runs: int, kills: int, seed: int) -> None:
    url = f"{kind}:{folder / 'store'}"
    for number in range(runs):
        killing = Killing(url, f"run {number}", folder / f"outside {number}", seed * 1000 + number)
        killing.kill_many(kills)
        killing.judge()


@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_no_effect_happens_twice_when_processes_are_killed(kind, folder):
    _kill_many(kind, folder, runs=4, kills=15, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_no_effect_happens_twice_when_thousands_of_processes_are_killed(kind, seed, folder):
    _kill_many(kind, folder, runs=10, kills=20, seed=100 + seed)


@pytest.mark.parametrize("program", [two_calls, two_calls_at_once])
@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_a_process_killed_in_the_second_call_of_a_turn_does_not_repeat_the_first(kind, program, folder):
    url, outside = f"{kind}:{folder / 'store'}", Outside(folder / "outside")
    with Worker(stick_in_the_second, url, program, outside.path) as worker:
        assert worker.hear() == "mailed"
        with keepstep.open(url) as store:
            while [one.status for one in store.effects("run") if one.tool == "Tools.pay"] != ["returned"]:
                time.sleep(0.001)  # the other thread is about to write it
        worker.kill()

    with keepstep.open(url, lease=LEASE) as store:
        with pytest.raises(keepstep.EffectInDoubt, match=r"Tools\.mail") as caught:
            carry_out(store, "run", program, Tools(outside))
        settle(store, "run", caught.value, outside)
        carry_out(store, "run", program, Tools(outside))

        assert sorted(line.tool for line in outside.lines()) == ["mail", "pay"]
        assert store.look("run").state == ["pay ['ada', 420]", "mail ['bob']"]
        judge_effects(store, "run", outside.lines())
