"""What the operating system refuses: nothing is half written, and nothing unreadable is taken for nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from keepstep.errors import CannotOpen, StoreFailed, StoreFull
from keepstep.log.records import Pruned
from keepstep.store.base import Append, Query
from keepstep.store.conformance.bench import drive
from keepstep.store.conformance.pen import Pen
from keepstep.store.conformance.turned_clock import TurnedClock
from keepstep.store.directory import DirectoryStore
from keepstep.store.directory.files import Files
from tests.store.directories import opened, run_file, run_with, tree, write


class FullFiles(Files):
    """A disk with room for so many bytes of runs."""

    room: int | None = None

    def write(self, fd: int, data: bytes, offset: int) -> None:
        if self.room is not None:
            if len(data) > self.room:
                super().write(fd, data[: self.room], offset)
                raise OSError(errno.ENOSPC, "No space left on device")
            self.room -= len(data)
        super().write(fd, data, offset)


class FailingFiles(Files):
    """Refuses one kind of operation, at the nth time."""

    def __init__(self) -> None:
        self.what = ""
        self.countdown = 0
        self.code = errno.EIO

    def _may_fail(self, what: str) -> None:
        if self.what == what:
            self.countdown -= 1
            if self.countdown < 0:
                self.what = ""
                raise OSError(self.code, os.strerror(self.code))

    def sync(self, fd: int) -> None:
        self._may_fail("sync")
        super().sync(fd)

    def sync_folder(self, path: Path) -> None:
        self._may_fail("sync_folder")
        super().sync_folder(path)

    def rename(self, source: Path, target: Path) -> None:
        self._may_fail("rename")
        super().rename(source, target)

    def truncate(self, fd: int, size: int) -> None:
        self._may_fail("truncate")
        super().truncate(fd, size)


def runs(path: Path) -> dict[str, bytes]:
    return tree(path / "runs")


def _refused(store: DirectoryStore, files: FullFiles, room: int, batch: list[Append]) -> bool:
    files.room = room
    try:
        drive(store.commit(batch))
    except StoreFull:
        return True
    return False


def test_a_full_disk_leaves_every_run_as_it_was(tmp_path) -> None:
    files = FullFiles()
    store = opened(tmp_path / "store", files=files)
    pen, other = run_with(store, 2), run_with(store, 2, "other")
    before = runs(store.path)
    batch = [pen.save(), Pen("new", TurnedClock()).open(), other.save()]
    room = 0
    while _refused(store, files, room, batch):
        assert runs(store.path) == before
        assert drive(store.view("new")).row is None
        room += 61
    files.room = None
    assert room > 2000
    assert drive(store.view("r")).row == pen.row.freeze()
    assert drive(store.view("other")).row == other.row.freeze()
    assert [row.run_id for row in drive(opened(store.path).rows(Query(starts_with="n"), None, 9)).rows] == ["new"]


def test_a_full_disk_leaves_a_run_that_was_to_be_pruned_or_deleted(tmp_path) -> None:
    files = FullFiles()
    store = opened(tmp_path / "store", files=files)
    pen = run_with(store, 2)
    before = runs(store.path)
    prune = pen.copy().append(Pruned(dropped=[(1, 3)]), dropped=[(1, 3)])
    for room in (0, 25, 100, 1000):
        files.room = room
        with pytest.raises(StoreFull):
            drive(store.commit([prune]))
        files.room = min(room, 100)
        with pytest.raises(StoreFull):
            drive(store.delete("r", lambda view: None))
        assert runs(store.path) == before
    files.room = None
    write(store, prune)


@pytest.mark.parametrize("code", [errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("what", ["sync", "sync_folder"])
def test_a_disk_that_does_not_sync_leaves_every_run_as_it_was(tmp_path, what: str, code: int) -> None:
    files = FailingFiles()
    store = opened(tmp_path / "store", files=files)
    pen = run_with(store, 2)
    before = runs(store.path)
    files.what, files.countdown, files.code = what, int(what == "sync"), code
    with pytest.raises(StoreFull if code == errno.EDQUOT else StoreFailed) as raised:
        drive(store.commit([pen.copy().save(), Pen("new", TurnedClock()).open()]))
    assert isinstance(raised.value.__cause__, OSError)
    assert runs(store.path) == before
    write(store, pen.save())
    assert len(drive(opened(store.path).records("r"))) == 4


def test_a_failure_behind_the_point_of_no_return_says_so(tmp_path) -> None:
    files = FailingFiles()
    store = opened(tmp_path / "store", files=files)
    run_with(store, 2)
    files.what, files.code = "sync_folder", errno.ENOSPC
    with pytest.raises(StoreFailed, match="Look at them") as raised:
        drive(store.delete("r", lambda view: None))
    assert isinstance(raised.value.__cause__, OSError)


def test_a_write_that_cannot_be_taken_back_says_so(tmp_path) -> None:
    files = FailingFiles()
    store = opened(tmp_path / "store", files=files)
    pen = run_with(store, 2)

    def fail_for_good(fd: int) -> None:
        files.what = "truncate"
        raise OSError(errno.EIO, "Input/output error")

    files.sync = fail_for_good  # type: ignore[method-assign]
    with pytest.raises(StoreFailed, match="could not be taken back"):
        drive(store.commit([pen.save()]))


def test_an_interrupted_commit_is_taken_back(tmp_path) -> None:
    files = Files()
    store = opened(tmp_path / "store", files=files)
    pen = run_with(store, 2)
    before = runs(store.path)
    sync = files.sync

    def interrupted(fd: int) -> None:
        files.sync = sync  # type: ignore[method-assign]
        raise KeyboardInterrupt

    files.sync = interrupted  # type: ignore[method-assign]
    append = pen.save()
    with pytest.raises(KeyboardInterrupt):
        drive(store.commit([append]))
    assert runs(store.path) == before
    write(store, append)


@pytest.fixture
def deny(monkeypatch):
    """Root may read everything, so the refusal is made here."""
    real = os.open

    def refuse(suffix: str, code: int = errno.EACCES) -> None:
        def guarded(path, *arguments, **named) -> int:
            if str(path).endswith(suffix):
                raise OSError(code, os.strerror(code), str(path))
            return real(path, *arguments, **named)

        monkeypatch.setattr(os, "open", guarded)

    yield refuse
    monkeypatch.setattr(os, "open", real)


def test_a_run_that_may_not_be_read_is_an_error_and_not_no_run(tmp_path, deny) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 1)
    drive(store.view("r"))
    deny("r.jsonl")
    for attempt in (
        lambda: drive(store.view("r")),
        lambda: drive(store.records("r")),
        lambda: drive(store.effects("r")),
        lambda: drive(store.rows(Query(), None, 9)),
        lambda: drive(store.commit([Pen("r", TurnedClock()).open()])),
        lambda: drive(store.claim(None, 9, lambda view: None)),
    ):
        with pytest.raises(StoreFailed, match=r"runs/r\.jsonl: Permission denied"):
            attempt()


def test_a_folder_that_may_not_be_read_is_an_error_and_not_an_empty_store(tmp_path, monkeypatch) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 1)

    def refuse(path: Path) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(store._files, "names", refuse)
    with pytest.raises(StoreFailed, match=r"store/runs: Permission denied"):
        drive(store.rows(Query(), None, 9))
    with pytest.raises(StoreFailed, match="Permission denied"):
        drive(store.renew("ann", 30))


def test_a_runs_folder_that_is_missing_is_an_error(tmp_path) -> None:
    store = opened(tmp_path / "store")
    (store.path / "runs").rmdir()
    with pytest.raises(StoreFailed, match="runs"):
        drive(store.rows(Query(), None, 9))


@pytest.mark.parametrize("name", ["lock", "keepstep.json"])
def test_a_store_that_may_not_be_opened_says_which_file(tmp_path, deny, name: str) -> None:
    opened(tmp_path / "store")
    deny(name)
    for read_only in (name != "lock", False):
        with pytest.raises(CannotOpen, match=name):
            opened(tmp_path / "store", read_only=read_only)


def test_a_lease_that_may_not_be_read_is_an_error_and_not_a_dead_owner(tmp_path, deny) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 0)
    drive(store.enlist("ann", 30))
    write(store, pen.claim("ann"))
    deny("ann.json")
    with pytest.raises(StoreFailed, match=r"leases/ann\.json"):
        drive(store.view("r"))


def test_a_symbolic_link_is_not_followed(tmp_path) -> None:
    store = opened(tmp_path / "store")
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    run_file(store).symlink_to(outside)
    with pytest.raises(StoreFailed, match=r"r\.jsonl"):
        drive(store.commit([Pen("r", TurnedClock()).open()]))
    assert outside.read_bytes() == b"precious"
