"""Worker processes that carry orders while they are killed and frozen at random, and the judge of what comes of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import keepstep
from keepstep.log.records import decode_head
from keepstep.runtime.inline import drive
from tests.fleet.orders import expected, orders
from tests.fleet.provider import Provider

ROOT = Path(__file__).resolve().parents[2]
LEASE_SECONDS = 1.5
STARTS_MAX = 10


class Worker:
    """One process of `keepstep worker`, and its successors."""

    def __init__(self, place: str, outside: Path, concurrency: int) -> None:
        self._command = [
            *(sys.executable, "-m", "keepstep", "worker", "tests.fleet.orders:orders", "--store", place),
            *("--concurrency", str(concurrency), "--lease", str(LEASE_SECONDS), "--poll", "0.2s", "--grace", "20s"),
            *("--deaths", "1000000", "--log-level", "error"),
        ]
        self._environment = {**os.environ, "KEEPSTEP_OUTSIDE": str(outside), "PYTHONFAULTHANDLER": "1"}
        self.wakes = 0.0
        """When it goes on, while it is frozen."""
        self.start()

    def start(self) -> None:
        """Begin, once more after a kill."""
        self.process = subprocess.Popen(self._command, cwd=ROOT, env=self._environment)

    def kill(self) -> None:
        """SIGKILL, and another one in its place."""
        self.process.kill()
        self.process.wait()
        self.wakes = 0.0
        self.start()

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, for so long."""
        self.process.send_signal(signal.SIGSTOP)
        self.wakes = time.monotonic() + seconds

    def wake(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)
        self.wakes = 0.0

    def end(self) -> int:
        """SIGTERM, and how it ended."""
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # it says where it hangs
            return self.process.wait()


class Fleet:
    """Some workers on one store, some orders, and bad luck."""

    def __init__(
        self, place: str, folder: Path, *, workers: int, seed: int, troubles: Mapping[str, Callable[[], None]] = {}
    ) -> None:
        """`troubles` are what may befall the store itself, by name."""
        self._place = place
        self._troubles = list(troubles.items())
        self._outside = folder / "outside"
        self._provider = Provider(self._outside)
        self._random = random.Random(seed)
        self._count = workers
        self._workers: list[Worker] = []
        self.befell: Counter[str] = Counter()

    def carry(self, store: keepstep.Store, runs: int, *, pause_seconds: float, limit_seconds: float) -> None:
        """Start the orders, and let the fleet carry them to their end, whatever befalls it."""
        for number in range(runs):
            _start(store, number)
        self._workers = [Worker(self._place, self._outside, concurrency=2) for _ in range(self._count)]
        end, over = time.monotonic() + limit_seconds, threading.Event()
        # In a thread that never uses the store: a worker that is frozen in the middle of a commit keeps everybody else
        # waiting, and who waits wakes nobody.
        bad_luck = threading.Thread(target=self._befall_until, args=(over, pause_seconds))
        bad_luck.start()
        try:
            while left := _not_ended(store):
                assert time.monotonic() < end, f"{left} orders have not ended; {dict(self.befell)}"
                self._answer(store)
                time.sleep(0.05)
            over.set()
            bad_luck.join()
            codes = [worker.end() for worker in self._workers]
        finally:
            over.set()
            bad_luck.join()
            for worker in self._workers:
                worker.process.kill()
                worker.process.wait()
        # One that was killed a moment ago may not listen to signals yet.
        assert set(codes) <= {0, -signal.SIGTERM}, "a worker that is not killed ends in good order"

    def judge(self, store: keepstep.Store, runs: int) -> None:
        """Every run has ended as if nothing had befallen it, and the world outside has seen every effect once."""
        for number in range(runs):
            look = store.look(f"order-{number}")
            assert look.status == "finished", (look.run_id, look.status, look.error)
            assert (look.state, look.result) == expected(number)
            verification = store.verify(look.run_id)
            assert verification.ok, verification.damage
            _check_epochs(store, look.run_id)
        happened = Counter((line.tool, line.order) for line in self._provider.happened())
        assert happened == {(tool, number): 1 for tool in ("reserve", "charge", "ship") for number in range(runs)}

    def _answer(self, store: keepstep.Store) -> None:
        """A person looks outside, and answers what is asked about doubts."""
        for gate in store.inbox(limit=1000).items:
            assert gate.about == "doubt", "only what cannot be found out otherwise is asked about"
            assert gate.details["tool"] == "ship"
            self.befell["asked"] += 1
            key = gate.details["idempotency_key"]
            outcome = "happened" if self._provider.ask(key) else "not_happened"
            result = f"ship {gate.details['arguments'][0][0]}"
            try:
                store.answer(gate.id, {"outcome": outcome, "result": result}, by="a person")
            except (keepstep.GateError, keepstep.StoreError):
                continue  # a worker that woke late has told how it went; or the store is away

    def _befall_until(self, over: threading.Event, pause_seconds: float) -> None:
        """Something happens now and then, until it is over; then all are awake."""
        while not over.wait(self._random.random() * pause_seconds):
            self._befall()
        for worker in self._workers:
            worker.wake()
            if worker.process.poll() is not None:
                worker.start()

    def _befall(self) -> None:
        """Something happens to one of the workers, or to all of them at once."""
        now = time.monotonic()
        for worker in self._workers:
            if worker.wakes and worker.wakes < now:
                worker.wake()
            if worker.process.poll() is not None:  # it began while the store was away; a supervisor starts it again
                worker.start()
                self.befell["begun again"] += 1
        worker = self._random.choice(self._workers)
        match self._random.randrange(3 + len(self._troubles)):
            case 0:
                worker.kill()
                self.befell["killed"] += 1
            case 1 if not worker.wakes:
                worker.freeze(LEASE_SECONDS * (1 + self._random.random()))
                self.befell["frozen"] += 1
            case number if number > 2:
                name, happen = self._troubles[number - 3]
                happen()
                self.befell[name] += 1
            case _:
                pass


def _not_ended(store: keepstep.Store) -> int:
    statuses = ["ready", "running", "paused", "sleeping"]
    try:
        return len(store.runs("orders", status=statuses, limit=1000).items)
    except keepstep.StoreError:
        return 1  # it is away, so nobody knows


def _start(store: keepstep.Store, number: int) -> None:
    """Start an order; the store may be away for a while, and what is started twice is one run."""
    for _ in range(STARTS_MAX):
        with suppress(keepstep.StoreError):
            store.start(orders, {"order": number, "log": []}, id=f"order-{number}")
            return
    raise AssertionError("the store stays away")


def _check_epochs(store: keepstep.Store, run_id: str) -> None:
    """What a holder wrote stands between its claim and the next one: nobody wrote late."""
    session: Any = store._session
    epoch = 0
    for one in drive(session.engine.store.records(run_id, bodies=False)):
        record: Any = decode_head(one.head)
        if record.kind == "claimed":
            assert record.epoch > epoch
            epoch = record.epoch
        elif record.kind != "opened":
            assert record.epoch in (0, epoch), f"{run_id}: {record.kind} of epoch {record.epoch} in epoch {epoch}"
