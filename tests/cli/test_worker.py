"""`keepstep worker`, as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import keepstep
from keepstep.flows.flow import Flow

LIMIT = 50

APP = """
import time
from pathlib import Path

import keepstep

plain = keepstep.Flow("plain", start="one")


@plain.step
def one(run, state):
    if state.get("slow"):
        Path("begun").touch()
        while not Path("go on").exists():
            time.sleep(0.01)
    return "two"


@plain.step
def two(run, state):
    return run.finish(state)


awaited = keepstep.Flow("awaited")


@awaited.step
async def only(run, state):
    return run.finish(state)


@keepstep.flow("killer")
def killer(run):
    import os

    os.kill(os.getpid(), 9)


number = 7
"""

PLAIN, AWAITED, KILLER = Flow("plain", start="one"), Flow("awaited"), keepstep.flow("killer")(lambda run: None)
for made, names in ((PLAIN, ("one", "two")), (AWAITED, ("only",))):
    for name in names:
        made.step(name=name)(lambda run, state: None)


@pytest.fixture
def app(folder):
    (folder / "app.py").write_text(APP)
    return folder


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "keepstep", *arguments]


def said(folder, *arguments, **more):
    """What a command that ends by itself says, and its code."""
    done = subprocess.run(
        command(*arguments), cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT, **more
    )
    return done.returncode, done.stdout + done.stderr


class Process:
    """A worker that is signalled."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            command("worker", *arguments),
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out

    def hear(self, what: str) -> str:
        """The line of its log that says this."""
        assert self.process.stdout is not None
        return next(line for line in self.process.stdout if what in line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def appears(path):
    stop = time.monotonic() + LIMIT
    while not path.exists():
        assert time.monotonic() < stop, path
        time.sleep(0.01)


@pytest.mark.parametrize(("named", "flow"), [("app:plain", PLAIN), ("app:awaited", AWAITED), ("app", AWAITED)])
def test_it_carries_the_flows_that_are_named_and_ends_in_good_order(app, named, flow):
    store = keepstep.open(app / "runs.db")
    with Process(app, named, "--store", "runs.db", "--alive", "alive") as worker:
        assert store.start(flow, {"n": 1}).result(timeout=LIMIT) == {"n": 1}
        appears(app / "alive")
        code, out = worker.end()
    store.close()

    assert code == 0
    assert "worker has ended" in out
    assert "run finished" in out


def test_the_store_may_be_named_by_the_environment(app):
    store = keepstep.open(f"dir:{app / 'runs'}")
    with Process(app, "app:plain", KEEPSTEP_STORE=f"dir:{app / 'runs'}") as worker:
        assert store.start(PLAIN, {}).result(timeout=LIMIT) == {}
        assert worker.end(signal.SIGINT)[0] == 0
    store.close()


def test_a_signal_lets_the_running_step_end_and_gives_the_run_back(app):
    store = keepstep.open(app / "runs.db")
    with Process(app, "app:plain", "--store", "runs.db") as worker:
        handle = store.start(PLAIN, {"slow": True})
        appears(app / "begun")
        worker.process.send_signal(signal.SIGTERM)
        told = worker.hear("worker stops")
        (app / "go on").touch()
        worker.process.communicate(timeout=LIMIT)
    look = handle.look()
    store.close()

    assert worker.process.returncode == 0
    assert (look.status, look.next) == ("ready", "two")
    assert "1 runs are under way" in told


def test_a_signal_that_another_thread_gets_is_heard_all_the_same(app):
    """As happens to a process that was frozen when it came: see `JOIN_SECONDS`."""
    script = """
import os, signal, sys, threading, time

def send():
    while not any(thread.name == "keepstep worker" for thread in threading.enumerate()):
        time.sleep(0.01)
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=send).start()
from keepstep.cli import main
sys.argv = ["keepstep", "worker", "app:plain", "--store", "runs.db"]
main()
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=app, check=False, timeout=LIMIT)

    assert done.returncode == 0


def test_a_second_signal_ends_it_at_once(app):
    store = keepstep.open(app / "runs.db")
    with Process(app, "app:plain", "--store", "runs.db", "--grace", "1h") as worker:
        handle = store.start(PLAIN, {"slow": True})
        appears(app / "begun")
        worker.process.send_signal(signal.SIGTERM)
        worker.hear("worker stops")  # two signals at the same moment are one
        code, _ = worker.end()
    look = handle.look()
    store.close()

    assert code == 0
    assert (look.status, look.next) == ("ready", "one")


def test_a_run_that_kills_its_workers_is_given_up_by_the_one_that_lives(app):
    store = keepstep.open(app / "runs.db")
    handle = store.start(KILLER)
    for _ in range(2):
        with Process(app, "app:killer", "--store", "runs.db", "--deaths", "2") as worker:
            assert worker.process.wait(LIMIT) == -signal.SIGKILL
    with Process(app, "app:killer", "--store", "runs.db", "--deaths", "2") as worker:
        with pytest.raises(keepstep.RunFailed, match="ended its worker 2 times"):
            handle.result(timeout=LIMIT)
        code, out = worker.end()
    store.close()

    assert code == 0
    assert "run given up after 2 deaths" in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing:flow"], "There is no module 'nothing'"),
        (["app:missing"], "app has no 'missing'; its flows are plain, awaited, killer"),
        (["app:number"], "app:number is a int, no flow"),
        (["app:"], "names no flow"),
        (["json"], "There is no flow in json"),
        (["app:plain", "--poll", "soon"], "poll= is 'soon'"),
        (["app:plain", "--concurrency", "0"], "concurrency= is 0"),
        (["app:plain", "--log-level", "loud"], "give one of debug, info"),
        (["app:plain", "--store", "memroy:"], "did you mean memory:?"),
        (["app:plain", "--store", "memory:"], "no other process reaches"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(app, arguments, told):
    code, out = said(app, "worker", *arguments, *([] if "--store" in arguments else ["--store", "runs.db"]))

    assert code == 1
    assert out.startswith("keepstep: ")
    assert told in out
    assert "Traceback" not in out


def test_a_module_that_cannot_be_imported_shows_why(app):
    (app / "broken.py").write_text("import nothing_of_that_name\n")

    code, out = said(app, "worker", "broken", "--store", "runs.db")

    assert code == 1
    assert "Traceback" in out
    assert "nothing_of_that_name" in out


def test_without_a_store_it_says_how_to_name_one(app):
    environment = {name: value for name, value in os.environ.items() if name != "KEEPSTEP_STORE"}
    code, out = said(app, "worker", "app:plain", env=environment)

    assert code == 2
    assert "--store" in out


def test_help_names_every_option(app):
    code, out = said(app, "worker", "--help", env={**os.environ, "COLUMNS": "200"})

    assert code == 0
    for option in ("--store", "--concurrency", "--poll", "--grace", "--lease", "--deaths", "--alive", "--log-level"):
        assert option in out
    assert "KEEPSTEP_STORE" in out


def test_without_the_extra_it_says_what_to_install():
    script = "import sys; sys.modules['typer'] = None; from keepstep.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "pip install 'keepstep[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_script_is_the_module(app):
    script = Path(sys.executable).with_name("keepstep")
    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=False)

    assert done.returncode == 0
    assert "worker" in done.stdout
