"""Threads, processes and forks on one file."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path

import pytest

from keepstep.log.fold import thaw
from keepstep.runtime.clock import SystemClock
from keepstep.store.base import Committed, Conflict, Decision
from tests.store.sqlite.growing import Log, child, done, opened, said

CONTEST = """
from keepstep.log.fold import thaw
store = opened(sys.argv[1])
won = 0
while won < 25:
    log = Log("r", row=thaw(done(store.view("r")).row))
    outcome = done(store.commit([log.saved(sys.argv[2].encode())]))[0]
    won += type(outcome).__name__ == "Committed"
done(store.close())
print(won)
"""


def test_many_processes_append_to_one_run_and_no_append_is_lost(path):
    store = opened(path)
    done(store.commit([Log("r").opened()]))
    children = [child(CONTEST, path, n) for n in range(6)]
    assert [said(one) for one in children] == ["25"] * 6
    bodies = [one.body for one in done(store.records("r", after=1))]
    assert len(bodies) == 150
    assert {bodies.count(b"%d" % n) for n in range(6)} == {25}
    done(store.close())


def test_many_threads_write_and_read_through_one_store(path):
    store = opened(path, SystemClock())
    failed = []

    def work(name):
        try:
            log = Log(name)
            done(store.commit([log.opened()]))
            for n in range(2, 22):
                assert isinstance(done(store.commit([log.saved()]))[0], Committed)
                assert done(store.view(name)).row.seq == n
                assert len(done(store.records(name))) == n
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(f"r{n}",)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert done(store.size(None)).records == 12 * 21
    done(store.close())


def test_reads_do_not_wait_for_a_write(store):
    log = Log("r")
    done(store.commit([log.opened()]))
    seen = []

    def look(view):
        thread = threading.Thread(target=lambda: seen.append(done(store.view("r")).row.seq))
        thread.start()
        thread.join(10)

    done(store.commit([log.saved(), Decision("r", look)]))
    assert seen == [1]
    assert done(store.view("r")).row.seq == 2


def test_no_read_transaction_outlives_a_call(store, path):
    for n in range(3):
        done(store.commit([Log(f"r{n}").opened()]))
    done(store.view("r1"))
    done(store.records("r1", limit=1))
    with pytest.raises(RuntimeError):
        store._read(_breaking)
    other = opened(path)
    done(other.commit([Log("s").opened()]))
    cursor = other._connections.writer.cursor()
    assert cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] == 0
    done(other.close())


def _breaking(cursor):
    cursor.execute("SELECT * FROM runs").fetchone()
    raise RuntimeError


def test_a_store_is_closed_from_another_thread(path):
    store = opened(path)
    done(store.commit([Log("r").opened()]))
    thread = threading.Thread(target=lambda: done(store.close()))
    thread.start()
    thread.join()
    assert not Path(f"{path}-wal").exists()


def locks_of(pid):
    with Path("/proc/locks").open() as file:
        return [line for line in file if f" {pid} " in line and "POSIX" in line]


def in_child(work):
    """What `work` returns in a forked child."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = str(work())
        except BaseException as error:
            answer = repr(error)
        os.write(write, answer.encode())
        os.close(write)
        gc.collect()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return answer


def test_parent_and_child_go_on_after_a_fork(path):
    store = opened(path)
    log = Log("r")
    done(store.enlist("o", 60))
    done(store.commit([log.opened(owner="o")]))

    def work():
        row = thaw(done(store.view("r")).row)
        assert isinstance(done(store.commit([Log("r", row=row).saved(b"child")]))[0], Committed)
        assert done(store.view("r")).holder.stands is True
        assert locks_of(os.getpid())
        store.after_fork()
        return done(store.view("r")).row.seq

    assert in_child(work) == "3"
    assert done(store.commit([log.saved()])) == [Conflict()]
    assert [one.body for one in done(store.records("r", after=2))] == [b"child"]
    other = opened(path)
    assert done(other.view("r")).holder.stands is True
    assert done(other.renew("o", 60)).stands is True
    done(other.close())
    done(store.close())


def test_a_fork_waits_for_the_calls_under_way(path):
    store = opened(path, SystemClock())
    stop, failed = threading.Event(), []

    def write(name):
        log = Log(name)
        try:
            done(store.commit([log.opened()]))
            while not stop.is_set():
                assert isinstance(done(store.commit([log.saved()]))[0], Committed)
                done(store.view(name))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(f"r{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    answers = [in_child(lambda n=n: done(store.commit([Log(f"child {n}").opened()]))[0].now_us > 0) for n in range(8)]
    stop.set()
    for thread in threads:
        thread.join()
    assert answers == ["True"] * 8
    assert not failed
    assert done(store.view("child 7")).row.seq == 1
    done(store.close())


def test_a_child_may_use_its_copy_of_a_store_while_the_parent_ends_first(path):
    store = opened(path)
    done(store.commit([Log("r").opened()]))
    # The grandchild writes after the child that forked it, and after this process, have closed the store.
    read, write = os.pipe()

    def fork_again():
        if os.fork() == 0:
            os.close(read)
            row = thaw(done(store.view("r")).row)
            log = Log("r", row=row)
            first = done(store.commit([log.saved()]))[0]
            time.sleep(0.2)
            second = done(store.commit([log.saved()]))[0]
            os.write(write, f"{type(first).__name__} {type(second).__name__}".encode())
            os._exit(0)
        return "forked"

    assert in_child(fork_again) == "forked"
    done(store.close())
    os.close(write)
    with os.fdopen(read) as file:
        assert file.read() == "Committed Committed"
    again = opened(path)
    assert done(again.view("r")).row.seq == 3
    done(again.close())
