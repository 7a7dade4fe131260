"""`changes` tells that something has changed, whoever changed it."""

import threading
from contextlib import contextmanager

import pytest

import keepstep
from keepstep.runtime.clock import SystemClock


@contextmanager
def busy(act):
    """Something is done again and again beside the test, so that none of it has to happen at a certain time."""
    stop = threading.Event()

    def work():
        number = 0
        while not stop.wait(0.002):
            number += 1
            act(number)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def test_what_another_store_writes_is_noticed(place):
    writer, watcher = place.open(clock=SystemClock()), place.open(clock=SystemClock())
    changes = watcher.changes(timeout="20s")

    with busy(lambda number: writer.save("r", number, workflow="w")):
        seen = [next(changes) for _ in range(3)]

    assert len(set(seen)) == 3
    assert watcher.load("r").step


def test_what_the_store_itself_writes_is_noticed(place):
    store = place.open(clock=SystemClock())
    changes = store.changes(timeout="20s")

    with busy(lambda number: store.save("r", number, workflow="w")):
        assert next(changes) != next(changes)


def test_a_deletion_is_a_change(place):
    store = place.open(clock=SystemClock())
    for number in range(300):
        store.save(f"r{number}", {}, workflow="w")
    changes = store.changes(timeout="20s")

    with busy(lambda number: store.delete(f"r{number % 300}")):
        next(changes)


def test_changes_end_after_a_time_without_one(place):
    store = place.open(clock=SystemClock())
    store.save("r", {}, workflow="w")

    assert list(store.changes(timeout=0.02)) == []
    assert list(store.changes(timeout=0)) == []


def test_reading_is_no_change(place):
    store, other = place.open(clock=SystemClock()), place.open(clock=SystemClock())
    store.save("r", {}, workflow="w")

    with busy(lambda number: other.look("r")):
        assert list(store.changes(timeout=0.05)) == []


@pytest.mark.parametrize("timeout", ["soon", -1, True, float("nan")])
def test_a_timeout_is_a_time(memory_store, timeout):
    with pytest.raises(keepstep.BadInput, match="timeout="):
        next(memory_store.changes(timeout=timeout))
