import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

EXAMPLES = {
    "first_run.py": [
        "killed; does its owner still stand? False",
        "goes on after step 4",
        "party-7 is finished: 6 questions answered. It was claimed 3 times.",
        "nothing is damaged",
    ],
    "plain_pair.py": ["step 2: check -> answer", "refund-17 ended at step 3: Your refund is on its way."],
    "carry.py": ["failed: the server did not answer", "finished: 3"],
    "async_agents.py": ["is finished at step 5", "there are more", "20 runs"],
    "refund.py": [
        "is asked: How much shall we refund",
        "paused: waits for an answer",
        "finds in the provider's books: 120",
        "finished: 120 refunded with the payment in the books",
        "the provider booked 1 payment",
    ],
    "go_back.py": [
        "flight: undo",
        "takes back the hotel to Rome",
        "stops at the flight: the airline's system is down",
        "ready at step 1, line 2: {'city': 'Rome', 'booked': False}",
        "booked: flight to Paris, hotel to Paris",
        "the ledger: mail about Rome, attempt 1, line 1, returned",
    ],
    "worker.py": [
        "pays order 3",
        "that worker is dead",
        "refund-3 asks: doubt",
        "refund-4 asks: question",
        "refund-3: the bank has it",
        "refund-4: order 4 is paid",
    ],
    "typed_state.py": [
        "version 2, a Conversation of ['ada', 'bob']",
        "  Message(role='assistant', text='Good morning')",
        "can still be read: ['ada', 'bob']",
    ],
}


def run(name, folder):
    return subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name)],
        cwd=folder,
        env={"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_shows_what_it_should_at_eighty_columns_and_leaves_nothing_behind(name, tmp_path):
    done = run(name, tmp_path)

    assert (done.stderr, done.returncode) == ("", 0)
    assert not [line for line in EXAMPLES[name] if line not in done.stdout]
    assert not [line for line in done.stdout.splitlines() if len(line) > 80]
    assert not list(tmp_path.iterdir())


def test_every_example_is_run():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)
