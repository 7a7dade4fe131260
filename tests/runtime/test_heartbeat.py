"""The thread that keeps a lease alive: it beats by the clock, survives every failure, and stops when told."""

from __future__ import annotations

import queue
import threading

import pytest

from keepstep.errors import ClaimLost, StoreBusy, StoreFailed
from keepstep.runtime.clock import SystemClock
from keepstep.runtime.heartbeat import BEATS_AFTER_FAILURE, BEATS_PER_LEASE, Heartbeat
from keepstep.store.base import Renewal
from keepstep.testing import Clock

LEASE_SECONDS = 30.0
BEAT_SECONDS = LEASE_SECONDS / BEATS_PER_LEASE
PATIENCE_SECONDS = 15.0

STANDS = Renewal(stands=True, now_us=0, held={})


class StepClock(Clock):
    """Tells how long each wait is to be, and ends it when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: queue.Queue[float] = queue.Queue()
        self.steps: queue.Queue[bool] = queue.Queue()

    def wait(self, stop, seconds):
        self.waits.put(seconds)
        self.steps.get(timeout=PATIENCE_SECONDS)
        return stop.is_set()

    def beat(self):
        """Let the wait end; gives the length of the next one."""
        self.steps.put(True)
        return self.waits.get(timeout=PATIENCE_SECONDS)


@pytest.fixture
def clock():
    return StepClock()


@pytest.fixture
def hearts():
    """Hearts that are stopped at the end."""
    started = []
    yield started
    for heart, clock in started:
        heart._stop.set()
        if isinstance(clock, StepClock):
            clock.steps.put(True)
        heart.stop()


@pytest.fixture
def start(hearts, clock):
    def begin(renew, heard=lambda renewal: None, lease_seconds=LEASE_SECONDS, by=clock):
        heart = Heartbeat(renew, heard, lease_seconds, by)
        hearts.append((heart, by))
        heart.start()
        return heart

    return begin


def test_it_beats_three_times_in_a_lease(start, clock):
    renewed, heard = [], []
    start(lambda: renewed.append(1) or STANDS, heard.append)

    assert clock.waits.get(timeout=PATIENCE_SECONDS) == BEAT_SECONDS
    assert not renewed  # the lease was just begun
    assert [clock.beat() for _ in range(5)] == [BEAT_SECONDS] * 5
    assert len(renewed) == 5
    assert heard == [STANDS] * 5


ERRORS = [StoreFailed("no."), StoreBusy("no."), ClaimLost("r"), OSError(5, "no"), RuntimeError("no"), KeyError("no"),
    MemoryError(), UnicodeError("no"), StopIteration(), AssertionError("no"), TypeError("no")]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["renewing", "hearing"])
def test_it_beats_on_after_any_failure_and_sooner(start, clock, error, where):
    failing = [error, error]
    heard = []

    def fail():
        if failing:
            raise failing.pop()

    def renew():
        if where == "renewing":
            fail()
        return STANDS

    def hear(renewal):
        if where == "hearing":
            fail()
        heard.append(renewal)

    start(renew, hear)
    assert clock.waits.get(timeout=PATIENCE_SECONDS) == BEAT_SECONDS

    soon = BEAT_SECONDS / BEATS_AFTER_FAILURE
    assert [clock.beat() for _ in range(4)] == [soon, soon, BEAT_SECONDS, BEAT_SECONDS]
    assert heard == [STANDS, STANDS]


def test_a_failing_store_is_tried_well_within_the_lease():
    beats = BEAT_SECONDS / BEATS_AFTER_FAILURE

    assert BEAT_SECONDS + 5 * beats < LEASE_SECONDS


def test_it_stops_at_once_however_long_the_lease(start):
    heart = start(lambda: STANDS, lease_seconds=1e6, by=SystemClock())
    assert heart._thread.is_alive()

    heart.stop()  # would hang for days

    assert not heart._thread.is_alive()


def test_after_stop_nothing_is_renewed(start):
    clock = Clock()
    renewed = threading.Event()
    heart = start(lambda: renewed.set() or STANDS, by=clock)
    heart.stop()

    clock.turn(LEASE_SECONDS * 10)

    assert not heart._thread.is_alive()
    assert not renewed.is_set()


def test_stopping_waits_for_the_beat_under_way(start, clock):
    under_way, go_on, told = threading.Event(), threading.Event(), []

    def renew():
        under_way.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return STANDS

    heart = start(renew, told.append)
    clock.steps.put(True)
    assert under_way.wait(PATIENCE_SECONDS)
    stopping = threading.Thread(target=heart.stop, daemon=True)
    stopping.start()
    stopping.join(0.05)
    assert stopping.is_alive()

    go_on.set()
    clock.steps.put(True)
    stopping.join(PATIENCE_SECONDS)

    assert not stopping.is_alive()
    assert told == [STANDS]


def test_it_may_be_stopped_from_its_own_thread(start, clock):
    hearts = []
    heart = start(lambda: STANDS, lambda renewal: hearts[0].stop())
    hearts.append(heart)

    clock.steps.put(True)
    clock.steps.put(True)
    heart._thread.join(PATIENCE_SECONDS)

    assert not heart._thread.is_alive()


def test_stopping_twice_or_before_the_start_is_fine():
    heart = Heartbeat(lambda: STANDS, lambda renewal: None, LEASE_SECONDS, Clock())
    heart.stop()
    heart.stop()


def test_it_does_not_keep_its_process_alive(start):
    assert start(lambda: STANDS, by=SystemClock())._thread.daemon
