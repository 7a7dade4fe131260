"""An agent's process is killed twice, and its run goes on. Start it with `make demo`.

This process starts the agent as a child, kills it in the middle of its work (SIGKILL: nothing can be tidied up),
starts it again, and so on until the run is finished. Then it looks at what the store has. All of it happens in
a temporary folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import keepstep

KILL_AFTER_STEPS = (2, 4)
ANSWERS = {  # what a model would say
    "How many guests?": "Forty, of whom six are children.",
    "Which room?": "The garden room: it seats fifty and has a ramp.",
    "What to eat?": "A buffet. Two guests eat no nuts, so none is served.",
    "Which music?": "A quartet until ten, then a list of their own.",
    "What does it cost?": "2,450 for the room and the buffet, 600 for music.",
    "What is open?": "The cake. Ada asks her baker on Monday.",
}


# --- the agent -------------------------------------------------------------------------------------------------------


def ask_model(question: str) -> str:
    """Stands for a call that takes its time."""
    time.sleep(0.1)
    return ANSWERS[question]


def agent(place: str) -> None:
    """One process of the agent: it begins, or goes on from wherever the one before it was killed."""
    with keepstep.open(place) as store, store.run("party-7", workflow="plan") as run:
        print(f"process {os.getpid()}", f"goes on after step {run.step}" if run.step else "begins", flush=True)
        state = run.state or {"todo": list(ANSWERS), "plan": []}
        while state["todo"]:
            question = state["todo"].pop(0)
            state["plan"].append({"question": question, "answer": ask_model(question)})
            step = run.save(state, next="ask")
            print(f"  step {step}: {question} {state['plan'][-1]['answer']}", flush=True)
        run.finish(f"{len(state['plan'])} questions answered")


# --- the demonstration -----------------------------------------------------------------------------------------------


def work(place: str, kill_after: int | None) -> None:
    """Let a process work; kill it after this step, while it waits for its model."""
    command = [sys.executable, __file__, place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - our own file
        assert child.stdout is not None
        for line in child.stdout:
            print("  " + line, end="")
            if kill_after is not None and line.startswith(f"  step {kill_after}:"):
                child.kill()
                break


def show(name: str, text: str) -> None:
    """Print what one call told, in two columns."""
    print(textwrap.fill(text, 78, initial_indent=f"  {name:<9}", subsequent_indent=" " * 11))


def main() -> None:
    """Kill, go on, and look."""
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "runs.db")
        print("An agent plans a party. Its process will be killed twice.\n")
        with keepstep.open(place) as store:
            for step in KILL_AFTER_STEPS:
                work(place, step)
                holder = store.look("party-7").holder
                assert holder is not None
                print(f"  killed; does its owner still stand? {holder.stands}: whoever comes next goes on at once\n")
            work(place, None)
            print("\nWhat the store has now:\n")
            look_around(store)
    print("\nThe code: examples/first_run.py. Step by step: docs/tutorial/first-run.md.")


def look_around(store: keepstep.Store) -> None:
    """The calls that read, and a fork."""
    run = store.look("party-7")
    show("look", f"{run.run_id} is {run.status}: {run.result}. It was claimed {run.epoch} times.")

    for line in store.history("party-7", limit=2).items:
        show("history", f"step {line.step}: a state of {line.state_bytes} bytes, stored in {line.stored_bytes}")

    for change in store.diff("party-7", 5, 6)[-1:]:
        show("diff", f"from step 5 to 6, {change.path} was {change.kind}: {change.new['answer']}")

    fork = store.fork("party-7", at=3, edits={"todo": ["Which music?"]}, id="party-7-quiet")
    show("fork", f"{fork.run_id} starts from step {fork.step}, and is {fork.status}; still to do: {fork.state['todo']}")

    found = store.verify("party-7")
    show("verify", f"{found.records} records, {'nothing is damaged' if found.ok else found.damage}")

    size = store.size("party-7")
    heaviest = next(iter(size.by_key))
    show("size", f"{size.total} bytes in all; the heaviest part of the state is {heaviest!r}")


if __name__ == "__main__":
    agent(sys.argv[1]) if sys.argv[1:] else main()
