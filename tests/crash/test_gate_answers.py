"""Real processes answer the same questions at once: each has exactly one winner, and the others are told who."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import keepstep
from keepstep.log.records import decode_head
from keepstep.runtime.inline import drive
from tests.crash.processes import Report, Worker

PROCESSES = 2
GATES = 20


def answer_all(report: Report, hear: Any, url: str, name: str, gates: list[str]) -> None:
    """Answer every gate, and tell for each who won."""
    with keepstep.open(url) as store:
        report("ready")
        hear()
        for gate in gates:
            try:
                winner = store.answer(gate, {"from": name}, by=name).by
            except keepstep.AlreadyAnswered as error:
                winner = error.by
            report(winner)


def ask_and_hang(report: Report, hear: Any, url: str) -> None:
    """Get the answer, and be killed before the end."""
    with keepstep.open(url) as store, store.run("r") as run:
        report(run.ask("Go on?"))
        hear()


def _ask(store: keepstep.Store, run_id: str) -> str:
    with store.run(run_id, "w") as run:
        run.ask("Go on?")
    return store.look(run_id).gates[0]


def _kinds(store: keepstep.Store, run_id: str) -> Counter[str]:
    records = drive(store._session.engine.store.records(run_id))
    return Counter(decode_head(one.head).kind for one in records)


def test_of_two_processes_that_answer_the_same_gate_exactly_one_wins(shared_url):
    url = shared_url
    with keepstep.open(url) as store:
        gates = [_ask(store, f"run {number}") for number in range(GATES)]
        workers = [Worker(answer_all, url, f"worker {number}", gates) for number in range(PROCESSES)]
        for worker in workers:
            assert worker.hear() == "ready"
        for worker in workers:
            worker.tell("go")
        told = [worker.rest() for worker in workers]

        assert told[0] == told[1]
        assert store.inbox().items == []
        for number, winner in enumerate(told[0]):
            with store.run(f"run {number}") as run:
                assert run.ask("Go on?") == {"from": winner}
                run.finish()
            assert _kinds(store, f"run {number}")["answered"] == 1
            assert store.verify(f"run {number}").ok


@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_a_process_killed_right_after_the_answer_leaves_it_to_the_next(kind, tmp_path):
    url = f"{kind}:{tmp_path / 'store'}"
    with keepstep.open(url) as store:
        store.answer(_ask(store, "r"), "yes", by="ada")
        with Worker(ask_and_hang, url) as worker:
            assert worker.hear() == "yes"
            worker.kill()

        [run] = store.claim_due()
        assert (run.ask("Go on?"), run.deaths) == ("yes", 1)
        run.finish()
        assert _kinds(store, "r")["asked"] == 1
        assert store.verify("r").ok
