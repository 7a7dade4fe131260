"""Save and load, without claiming a run: a small workflow whose `next` says which function comes next.

`store.save` is one append, and is refused while somebody holds the run. Each step here is its own process's work in
real life (a request, a cron job); nothing is kept open in between.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keepstep

State = dict[str, Any]


def read(state: State) -> str:
    """The first step: take in what came."""
    state["amount"] = 420
    return "check"


def check(state: State) -> str:
    """The second: decide."""
    state["approved"] = state["amount"] < 500
    return "answer"


def answer(state: State) -> None:
    """The last: nothing comes after it."""
    state["mail"] = "Your refund is on its way." if state["approved"] else "Let us talk."


STEPS: dict[str, Callable[[State], str | None]] = {"read": read, "check": check, "answer": answer}


def take_one_step(store: keepstep.Store, job: str) -> bool:
    """Load where the job is, carry it on by one step, save. False when nothing is left to do."""
    last = store.load(job)
    state, step = (last.state, last.next) if last is not None else ({}, "read")
    if step is None:
        return False
    following = STEPS[step](state)
    number = store.save(job, state, next=following, workflow="refund")
    print(f"step {number}: {step} -> {following or 'the end'}")
    return True


def main() -> None:
    """Take steps until none is left."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "runs.db"
        more = True
        while more:
            with keepstep.open(place) as store:
                more = take_one_step(store, "refund-17")
        with keepstep.open(place, read_only=True) as store:
            last = store.load("refund-17")
            assert last is not None
            print(f"{last.run_id} ended at step {last.step}: {last.state['mail']}")


if __name__ == "__main__":
    main()
