"""Two processes answer the same question and resume after it, at once: one answer stands, and one payment happens.

The others are told by whom it was answered, or who has the run, and when.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import keepstep
from tests.crash.outside import Outside, Tools
from tests.crash.processes import Report, Worker
from tests.crash.test_effects_crash import judge_effects

RUNS = 12
PAY_SECONDS = 0.004
"""Long enough for the other worker to come while it is under way."""
CALL = "toolu_1"
PROMPT = "Refund 420 to Ada?"


class SlowTools(Tools):
    """A payment takes a moment."""

    def do(self, tool: str, *args: Any, once_per_key: bool = False) -> str:
        result = super().do(tool, *args, once_per_key=once_per_key)
        time.sleep(PAY_SECONDS)
        return result


def asking(run: keepstep.Run, tools: Tools) -> None:
    """A question, and a payment if the answer is yes."""
    if run.ask(PROMPT, {"approve": bool})["approve"]:
        run.finish(run.using(key=CALL).once(tools.pay, "ada", 420))


def approving(run: keepstep.Run, tools: Tools) -> None:
    """A payment that somebody has to approve."""
    run.finish(run.using(key=CALL, approve=PROMPT).once(tools.pay, "ada", 420))


def answer_and_resume(  # noqa: PLR0917 - a pipe carries them
    report: Report, hear: Any, url: str, folder: Path, number: int, gates: list[str], program: Callable[..., None]
) -> None:
    """Answer every question, and go on with every run; tell what came of it."""
    with keepstep.open(url) as store:
        report("ready")
        hear()
        for index, gate in enumerate(gates):
            answered = _told(lambda gate=gate: store.answer(gate, {"approve": True}, by=f"person {number}"))
            report(answered)
            report(_told(lambda index=index: _resume(store, index, folder, number, program)))


def _resume(store: keepstep.Store, index: int, folder: Path, number: int, program: Callable[..., None]) -> str:
    with store.run(f"run {index}") as run:
        program(run, SlowTools(Outside(folder / f"outside {index}", by=number)))
    return "went on"


def _told(act: Callable[[], Any]) -> tuple[str, Any, Any]:
    try:
        act()
    except keepstep.AlreadyAnswered as error:
        return "answered", error.by, error.at
    except keepstep.RunHeld as error:
        return "held", error.owner, error.until
    except keepstep.RunFinished as error:
        return "finished", error.result, None
    return "done", None, None


def _asked(store: keepstep.Store, index: int, folder: Path, program: Callable[..., None]) -> str:
    with store.run(f"run {index}", "refund") as run:
        program(run, Tools(Outside(folder / f"outside {index}")))
    [gate] = store.look(f"run {index}").gates
    return gate


@pytest.mark.parametrize("program", [asking, approving])
@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_of_two_who_answer_and_resume_at_once_one_wins_and_the_payment_happens_once(kind, program, tmp_path):
    url = f"{kind}:{tmp_path / 'store'}"
    with keepstep.open(url) as store:
        gates = [_asked(store, index, tmp_path, program) for index in range(RUNS)]
        workers = [Worker(answer_and_resume, url, tmp_path, number, gates, program) for number in (1, 2)]
        for worker in workers:
            assert worker.hear() == "ready"
        for worker in workers:
            worker.tell("go")
        first, second = [worker.rest() for worker in workers]

        for index, gate in enumerate(gates):
            at = 2 * index
            _judge_answers(store, gate, [first[at], second[at]])
            _judge_workers(store, index, [first[at + 1], second[at + 1]])
            outside = Outside(tmp_path / f"outside {index}")
            assert [line.tool for line in outside.lines()] == ["pay"]
            judge_effects(store, f"run {index}", outside.lines())
            assert store.verify(f"run {index}").ok


def _judge_answers(store: keepstep.Store, gate: str, told: list[tuple[str, Any, Any]]) -> None:
    """One won; the other was told who that was, and when. So is whoever sends the same answer again."""
    assert sorted(kind for kind, _, _ in told) == ["answered", "done"]
    winner = 1 + [kind for kind, _, _ in told].index("done")
    look = store.gate(gate)
    assert (look.status, look.by) == ("answered", f"person {winner}")
    assert told[2 - winner][1:] == (look.by, look.answered)
    with pytest.raises(keepstep.AlreadyAnswered) as again:
        store.answer(gate, {"approve": True}, by=f"person {winner}")
    assert (again.value.by, again.value.at) == (look.by, look.answered)


def _judge_workers(store: keepstep.Store, index: int, told: list[tuple[str, Any, Any]]) -> None:
    """One went on to the end; the other was told who has the run and until when, or how it ended."""
    kinds = [kind for kind, _, _ in told]
    assert kinds.count("done") == 1
    other, what, until = told[1 - kinds.index("done")]
    look = store.look(f"run {index}")
    assert (look.status, look.result) == ("finished", "pay ['ada', 420]")
    if other == "finished":
        assert what == look.result
    else:
        assert other == "held"
        assert what
        assert isinstance(until, datetime)
