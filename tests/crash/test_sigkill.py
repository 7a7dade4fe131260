"""Writers are killed at random moments: what `save` returned for is there, whole, and the next one goes on at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import keepstep
from tests.crash.processes import Worker
from tests.crash.saving import (
    LEASE,
    check,
    save_async_for_ever,
    save_for_ever,
    save_in_threads_for_ever,
    save_unclaimed_for_ever,
    state_at,
)  # fmt: skip

WAYS: list[Callable[..., None]] = [
    save_for_ever, save_for_ever, save_unclaimed_for_ever, save_in_threads_for_ever, save_async_for_ever,
]  # fmt: skip
AT_ONCE = 4
"""Workers on one store; more runs than these would only wait for the processor."""
RUN_STEPS_MAX = 2000


class Killing:
    """Workers on one store, each on a run of its own; one after another is killed, and another goes on."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.chance = random.Random(seed)
        self.saved: dict[str, int] = {}
        """Run id → the last step whose save had returned before the kill."""
        self.kills = 0
        self._workers: dict[str, Worker] = {}
        self._runs = 0

    def kill_many(self, kills: int) -> None:
        """Kill so many workers."""
        try:
            while self.kills < kills:
                while len(self._workers) < AT_ONCE:
                    self._start()
                self._kill_one(self.chance.choice(list(self._workers)))
        finally:
            for worker in self._workers.values():
                worker.kill()

    def _start(self) -> None:
        free = [one for one in self.saved if one not in self._workers and self.saved[one] < RUN_STEPS_MAX]
        run_id = free[0] if free else self._next_run()
        way = self.chance.choice(WAYS)
        self._workers[run_id] = Worker(way, self.url, run_id, self.saved[run_id])

    def _next_run(self) -> str:
        self._runs += 1
        run_id = f"run {self._runs}"
        self.saved[run_id] = 0
        return run_id

    def _kill_one(self, run_id: str) -> None:
        worker = self._workers.pop(run_id)
        with worker:
            for _ in range(self.chance.choice((0, 1, 1, 2, 5))):
                told = worker.hear()
                assert told is not None, "a worker ended by itself"
                self.saved[run_id] = told
            time.sleep(self.chance.random() * self.chance.choice((0.0005, 0.005, 0.02)))  # the moment is the test
            for told in worker.kill():
                self.saved[run_id] = told
        self.kills += 1

    def check_all(self) -> None:
        """Everything that was saved is there."""
        with keepstep.open(self.url, lease=LEASE) as store:
            for run_id, at_least in self.saved.items():
                step = check(store, run_id, at_least)
                for earlier in self.chance.sample(range(1, step + 1), min(step, 5)):
                    assert store.at(run_id, step=earlier).state == state_at(earlier)
                if step:
                    with store.run(run_id, "killed") as run:
                        run.finish(step)


def _url(kind: str, folder: Path) -> str:
    return f"{kind}:{folder / 'store'}"


def _kill_many(url: str, kills: int, seed: int) -> None:
    killing = Killing(url, seed)
    killing.kill_many(kills)
    assert sum(killing.saved.values()) > kills, "the workers were killed before they saved anything"
    killing.check_all()


@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_what_was_saved_survives_a_kill_and_the_next_worker_goes_on_at_once(kind, tmp_path):
    _kill_many(_url(kind, tmp_path), kills=110, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_what_was_saved_survives_thousands_of_kills(kind, seed, tmp_path):
    _kill_many(_url(kind, tmp_path), kills=250, seed=100 + seed)


@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_a_kill_while_the_store_is_being_created_leaves_a_place_that_can_be_opened(kind, tmp_path):
    chance = random.Random(7)
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        saved = 0
        for _ in range(2):
            with Worker(save_for_ever, _url(kind, folder), "run", saved) as worker:
                time.sleep(chance.random() * 0.05)  # the moment is the test
                saved = max([saved, *worker.kill()])
        with keepstep.open(_url(kind, folder), lease=LEASE) as store:
            check(store, "run", saved)
            assert store.save("another", state_at(1), workflow="killed") == 1
