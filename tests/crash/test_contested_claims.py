"""Four processes want the same runs at once: each run has exactly one winner, and none is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import keepstep
from tests.crash.processes import Report, Worker

PROCESSES = 4
CLAIMED_AT_ONCE = 7
BUSY = "busy"
TOLD_EVERY = 200
"""A worker that says nothing is taken for one that hangs."""


def claim_one_by_one(report: Report, hear: Any, url: str, name: str, runs: int) -> None:
    """Try every run, in the order in which everybody tries them."""
    won: list[str] = []
    refused = 0
    with keepstep.open(url) as store:
        report("ready")
        hear()
        for number in range(runs):
            try:
                with store.run(f"run {number}") as run:
                    assert run.state == {"number": number}
                    run.finish(name)
                won.append(run.id)
            except (keepstep.RunHeld, keepstep.RunFinished):
                refused += 1
            if number % TOLD_EVERY == 0:
                report(BUSY)
        report(won, refused)


def claim_what_is_due(report: Report, hear: Any, url: str, name: str, runs: int) -> None:
    """Take whatever is due, a few at a time, until there is nothing."""
    won: list[str] = []
    with keepstep.open(url) as store:
        report("ready")
        hear()
        while found := store.claim_due("w", limit=CLAIMED_AT_ONCE):
            for run in found:
                assert run.state == {"number": int(run.id.removeprefix("run "))}
                run.finish(name)
                won.append(run.id)
                if len(won) % TOLD_EVERY == 0:
                    report(BUSY)
        report(won, runs - len(won))


def _fill(url: str, runs: int) -> None:
    async def fill() -> None:
        async with keepstep.open_async(url) as store:
            await asyncio.gather(*(store.save(f"run {n}", {"number": n}, workflow="w") for n in range(runs)))

    asyncio.run(fill())


def _contest(url: str, function: Callable[..., None], runs: int) -> None:
    _fill(url, runs)
    workers = [Worker(function, url, f"worker {number}", runs) for number in range(PROCESSES)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")
    told = [[one for one in worker.rest() if one != BUSY] for worker in workers]

    winners = {run_id: f"worker {number}" for number, [(won, _)] in enumerate(told) for run_id in won}
    wins = Counter(run_id for [(won, _)] in told for run_id in won)
    assert wins == Counter(f"run {number}" for number in range(runs))
    assert [len(won) + refused for [(won, refused)] in told] == [runs] * PROCESSES
    with keepstep.open(url) as store:
        for run_id, winner in winners.items():
            look = store.look(run_id)
            assert (look.status, look.result, look.epoch) == ("finished", winner, 1)
        assert store.due().items == []
        for run_id in list(winners)[:: max(1, runs // 100)]:
            assert store.verify(run_id).ok


@pytest.mark.parametrize("function", [claim_one_by_one, claim_what_is_due])
@pytest.mark.parametrize(("kind", "runs"), [("sqlite", 5000), ("dir", 120)])
def test_a_contested_run_has_exactly_one_winner(kind, runs, function, tmp_path):
    _contest(f"{kind}:{tmp_path / 'store'}", function, runs)


@pytest.mark.parametrize("function", [claim_one_by_one, claim_what_is_due])
def test_a_contested_run_in_a_database_has_exactly_one_winner(function, postgres_url):
    _contest(postgres_url, function, 1000)


@pytest.mark.soak
@pytest.mark.parametrize("function", [claim_one_by_one, claim_what_is_due])
@pytest.mark.parametrize(("kind", "runs"), [("sqlite", 20_000), ("dir", 1000)])
def test_each_of_thousands_of_contested_runs_has_exactly_one_winner(kind, runs, function, tmp_path):
    _contest(f"{kind}:{tmp_path / 'store'}", function, runs)
