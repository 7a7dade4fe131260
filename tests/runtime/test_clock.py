"""The host's clock."""

from __future__ import annotations

import asyncio
import threading
import time

from keepstep.runtime.clock import SystemClock


def test_it_tells_the_time_of_the_host():
    before = time.time_ns() // 1000

    assert before <= SystemClock().now_us() <= time.time_ns() // 1000


def test_it_never_runs_backwards(monkeypatch):
    clock = SystemClock()
    host = iter([5_000_000, 3_000_000, 4_999_999, 6_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(host))

    assert [clock.now_us() for _ in range(4)] == [5000, 5000, 5000, 6000]


def test_a_wait_ends_when_it_is_told_to():
    stop = threading.Event()
    stop.set()

    assert SystemClock().wait(stop, 1e6)


def test_a_wait_ends_when_the_time_has_passed():
    assert not SystemClock().wait(threading.Event(), 0.001)


def test_sleeping_and_pausing_let_time_pass():
    clock = SystemClock()
    start = time.monotonic()

    clock.sleep(0.002)
    asyncio.run(clock.pause(0.002))

    assert time.monotonic() - start >= 0.004
