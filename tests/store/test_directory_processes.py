"""Several processes in one folder, and kills at any moment."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from keepstep.log.chain import Walk
from keepstep.runtime.clock import SystemClock
from keepstep.store.base import Append, Committed, Decision, Query, Store, View
from keepstep.store.conformance.bench import drive
from keepstep.store.conformance.pen import Pen, claiming, pen_on
from keepstep.store.conformance.turned_clock import TurnedClock
from keepstep.store.directory import DirectoryStore
from tests.store.directories import opened, run_with


def in_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            os.write(2, f"in the child: {error!r}\n".encode())
        finally:
            os._exit(code)
    return child


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def save(view: View) -> Append:
    return pen_on(view, TurnedClock()).save(bytes(3000))


def test_processes_may_create_one_store_at_once(tmp_path) -> None:
    for turn in range(5):
        path = tmp_path / f"store {turn}"

        def work(number: int, path: Path = path) -> None:
            run_with(opened(path), 1, f"r{number}")

        children = [in_child(lambda number=number: work(number)) for number in range(6)]
        assert [exit_code(child) for child in children] == [0] * 6
        assert len(drive(opened(path).rows(Query(), None, 99)).rows) == 6


def test_processes_that_write_one_run_lose_nothing(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 0)

    def work() -> None:
        mine = opened(store.path)
        for _ in range(20):
            (outcome,) = drive(mine.commit([Decision("r", save)]))
            assert isinstance(outcome, Committed)

    children = [in_child(work) for _ in range(4)]
    assert [exit_code(child) for child in children] == [0] * 4
    row = drive(store.view("r")).row
    assert row is not None
    assert row.seq == 81
    sound(store)


def sound(store: Store) -> None:
    walk = Walk("r")
    assert not [wrong for one in drive(store.records("r")) for wrong in walk.step(one)[1]]


def test_a_killed_writer_loses_nothing_that_it_was_told_is_written(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 0)
    for turn in range(12):
        reader, writer = os.pipe()

        def work(writer: int = writer) -> None:
            mine = opened(store.path)
            while True:
                drive(mine.commit([Decision("r", save), Decision("other", create_or_save)]))
                row = drive(mine.view("r")).row
                assert row is not None
                os.write(writer, row.seq.to_bytes(8, "big"))

        child = in_child(work)
        told = 0
        for _ in range(1 + turn % 4):
            told = int.from_bytes(os.read(reader, 8), "big")
        os.kill(child, signal.SIGKILL)
        assert exit_code(child) == -signal.SIGKILL
        os.close(writer)
        os.close(reader)
        row = drive(store.view("r")).row
        assert row is not None
        assert row.seq >= told
        sound(store)
    (outcome,) = drive(store.commit([Decision("r", save)]))
    assert isinstance(outcome, Committed)


def create_or_save(view: View) -> Append:
    return save(view) if view.row is not None else Pen("other", TurnedClock()).open()


def test_a_killed_owner_is_gone_at_once(tmp_path) -> None:
    store = DirectoryStore(tmp_path / "store", SystemClock())
    drive(store.open())
    reader, writer = os.pipe()

    def work() -> None:
        mine = DirectoryStore(store.path, SystemClock())
        drive(mine.enlist("ann", 3600))
        drive(mine.commit([Pen("r", TurnedClock()).open(), Decision("r", claiming(TurnedClock(), "ann"))]))
        os.write(writer, b"x")
        signal.pause()

    child = in_child(work)
    assert os.read(reader, 1) == b"x"
    holder = drive(store.view("r")).holder
    assert holder is not None
    assert holder.stands
    os.kill(child, signal.SIGKILL)
    exit_code(child)
    holder = drive(store.view("r")).holder
    assert holder is not None
    assert not holder.stands
    assert [row.run_id for row in drive(store.rows(Query(due=True), None, 9)).rows] == ["r"]
    os.close(reader)
    os.close(writer)


def test_a_child_forked_while_the_store_is_locked_does_not_keep_it_locked(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 0)
    reader, writer = os.pipe()
    children: list[int] = []

    def wait() -> None:
        os.read(reader, 1)

    def fork_inside(view: View) -> None:
        # As another thread's fork would, in the middle of a commit; the child calls nothing, and lives on.
        children.append(in_child(wait))

    drive(store.commit([Decision("r", fork_inside)]))
    drive(opened(store.path).view("r"))
    os.write(writer, b"x")
    assert exit_code(children[0]) == 0
    os.close(reader)
    os.close(writer)
