"""The whole store: failures of the disk, changes, backups, places."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from pathlib import Path

import apsw
import pytest

from keepstep.errors import CannotOpen, Damaged, KeepstepError, ReadOnly, StoreBusy, StoreFailed, StoreFull, TooLarge
from keepstep.runtime.clock import SystemClock
from keepstep.store.base import Committed
from keepstep.store.places import NETWORK, cannot_open, check_place, file_system_of, pick_mount
from keepstep.store.sqlite import connections
from keepstep.store.sqlite.failures import translate
from tests.store.sqlite.growing import Log, child, claiming, done, opened, said


def test_a_full_disk_writes_nothing_and_the_store_goes_on_once_there_is_space(store):
    log = Log("r")
    done(store.commit([log.opened(), log.saved(), Log("busy").opened()]))
    cursor = store._connections.writer.cursor()
    pages = cursor.execute("PRAGMA page_count").get
    cursor.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    big = log.saved(os.urandom(100_000))
    with pytest.raises(StoreFull, match="nothing was written"):
        done(store.commit([Log("other").opened(), big]))
    assert done(store.view("r")).row.seq == 2
    assert done(store.view("other")).row is None
    cursor.execute("PRAGMA max_page_count = 1000000").fetchall()
    assert isinstance(done(store.commit([big]))[0], Committed)


def test_a_lock_that_does_not_come_is_told_as_busy(store, path):
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    store._connections.writer.cursor().connection.set_busy_timeout(10)
    with pytest.raises(StoreBusy, match="Try again"):
        done(store.commit([Log("r").opened()]))
    other.execute("ROLLBACK")
    other.close()
    assert isinstance(done(store.commit([Log("r").opened()]))[0], Committed)


@pytest.mark.parametrize(
    ("error", "number", "told"),
    [
        (apsw.FullError(), 0, StoreFull),
        (apsw.IOError(), errno.ENOSPC, StoreFull),
        (apsw.IOError(), errno.EDQUOT, StoreFull),
        (OSError(errno.ENOSPC, ""), 0, StoreFull),
        (apsw.IOError(), errno.EIO, StoreFailed),
        (apsw.BusyError(), 0, StoreBusy),
        (apsw.CorruptError(), 0, Damaged),
        (apsw.NotADBError(), 0, Damaged),
        (apsw.ReadOnlyError(), 0, ReadOnly),
        (apsw.TooBigError(), 0, TooLarge),
        (apsw.NoMemError(), 0, StoreFailed),
    ],
)
def test_every_failure_has_its_error(error, number, told):
    failure = translate(error, "runs.db", number)
    assert type(failure) is told
    assert isinstance(failure, KeepstepError)


def test_a_text_that_is_no_text_is_refused(store):
    with pytest.raises(ValueError, match="surrogates"):
        done(store.view("\ud800"))
    assert done(store.view("r")).row is None


def read_all(path):
    store = opened(path)
    return [done(store.view(f"r{n}")) for n in range(300)]


def test_damage_inside_the_file_is_told(path):
    store = opened(path)
    done(store.commit([Log(f"r{n}").opened(workflow="w" * 100) for n in range(300)]))
    done(store.close())
    with path.open("r+b") as file:
        file.seek(8192 * 3)
        file.write(os.urandom(path.stat().st_size - 8192 * 4))
    with pytest.raises(Damaged, match="damaged"):
        read_all(path)


# --- changes ---------------------------------------------------------------------------------------------------------


def test_changes_are_seen_whoever_made_them(store, path):
    seen = done(store.changes(None, 0))
    assert done(store.changes(seen, 0)) == seen
    done(store.commit([Log("a").opened()]))
    own = done(store.changes(seen, 0))
    assert own != seen
    other = opened(path)
    done(other.commit([Log("b").opened()]))
    done(other.close())
    theirs = done(store.changes(own, 0))
    assert theirs not in (own, seen)
    said(child("done(opened(sys.argv[1]).commit([Log('c').opened()]))", path))
    assert done(store.changes(theirs, 0)) != theirs
    assert max(seen, own, theirs) < 2**53


def test_waiting_for_changes_grows_and_ends_in_time(store, clock):
    seen = done(store.changes(None, 0))
    assert done(store.changes(seen, 1.0)) == seen
    assert sum(clock.slept) == pytest.approx(1.0)
    assert clock.slept[0] == 0.005
    assert max(clock.slept) == 0.05


def test_a_refused_entry_is_no_change(store):
    done(store.commit([Log("a").opened()]))
    seen = done(store.changes(None, 0))
    done(store.commit([Log("a").opened(), claiming("a", "o")._replace(decide=lambda view: None)]))
    assert done(store.changes(seen, 0)) == seen


@pytest.mark.parametrize("act", ["commit", "close"])
def test_waiting_ends_when_something_changes_or_the_store_is_closed(path, act):
    store = opened(path, SystemClock())
    seen, answers = done(store.changes(None, 0)), []
    thread = threading.Thread(target=lambda: answers.append(done(store.changes(seen, 30))))
    thread.start()
    time.sleep(0.02)
    done(store.close() if act == "close" else store.commit([Log("a").opened()]))
    thread.join(10)
    assert not thread.is_alive()
    assert (answers != [seen]) is (act == "commit")


# --- backups ---------------------------------------------------------------------------------------------------------


def test_a_backup_opens_as_a_store_in_which_nobody_holds_a_run(store, tmp_path, clock):
    done(store.enlist("o", 3600))
    log = Log("r")
    done(store.commit([log.opened(owner="o"), log.saved(b"body")]))
    target = tmp_path / "copy.db"
    done(store.backup(str(target)))
    done(store.commit([log.saved(b"later")]))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert not [one for one in tmp_path.iterdir() if one.name.startswith("copy.db.")]
    for read_only in (True, False):
        copy = opened(target, clock, read_only=read_only)
        view = done(copy.view("r"))
        assert view.row.seq == 3
        assert view.holder.stands is False
        assert [one.body for one in done(copy.records("r", after=2))] == [b"body"]
        if not read_only:
            assert done(copy.renew("o", 5)).stands is False
            assert isinstance(done(copy.commit([claiming("r", "p")]))[0], Committed)
        done(copy.close())


def test_a_backup_is_made_by_a_reader_too(store, path, tmp_path):
    done(store.commit([Log("r").opened()]))
    reader = opened(path, read_only=True)
    done(reader.backup(str(tmp_path / "copy.db")))
    done(reader.close())
    copy = opened(tmp_path / "copy.db")
    assert done(copy.view("r")).row.seq == 1
    done(copy.close())


def test_a_backup_overwrites_nothing(store, tmp_path):
    (tmp_path / "copy.db").write_bytes(b"precious")
    with pytest.raises(CannotOpen, match="there is a file already"):
        done(store.backup(str(tmp_path / "copy.db")))
    assert (tmp_path / "copy.db").read_bytes() == b"precious"
    (tmp_path / "two.db.part").write_bytes(b"precious")
    with pytest.raises(CannotOpen, match="Remove it first"):
        done(store.backup(str(tmp_path / "two.db")))
    assert not (tmp_path / "two.db").exists()
    assert (tmp_path / "two.db.part").read_bytes() == b"precious"
    with pytest.raises(CannotOpen, match="does not exist"):
        done(store.backup(str(tmp_path / "no" / "copy.db")))


def test_a_backup_is_one_state_while_others_write(path, tmp_path):
    store = opened(path, SystemClock())
    one, two = Log("one"), Log("two")
    done(store.commit([one.opened(), two.opened()]))
    stop = threading.Event()

    def write():
        while not stop.is_set():
            done(store.commit([one.saved(b"x" * 500), two.saved(b"x" * 500)]))

    thread = threading.Thread(target=write)
    thread.start()
    for n in range(5):
        done(store.backup(str(tmp_path / f"copy{n}.db")))
    stop.set()
    thread.join()
    for n in range(5):
        copy = opened(tmp_path / f"copy{n}.db")
        seqs = [done(copy.view(run_id)).row.seq for run_id in ("one", "two")]
        assert seqs[0] == seqs[1] == len(done(copy.records("one")))
        done(copy.close())
    done(store.close())


# --- places ----------------------------------------------------------------------------------------------------------

MOUNTS = [
    "21 1 8:1 / / rw - ext4 /dev/sda rw",
    "30 21 0:40 / /mnt/share rw shared:5 - nfs4 server:/x rw",
    "31 30 8:2 / /mnt/share/local\\040disk rw - xfs /dev/sdb rw",
    "32 21 0:41 / /home rw - ext4 /dev/sdc rw",
    "33 21 0:42 / /home rw - cifs //server/home rw",
    "broken line",
]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/runs.db", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/a/runs.db", "nfs4"),
        ("/mnt/shared/runs.db", "ext4"),
        ("/mnt/share/local disk/runs.db", "xfs"),
        ("/home/ada/runs.db", "cifs"),
    ],
)
def test_the_file_system_of_a_path_is_told_from_the_mounts(path, kind):
    assert pick_mount(path, MOUNTS) == kind


def test_a_network_file_system_is_refused(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"30 21 0:40 / {tmp_path.resolve()} rw - nfs4 server:/x rw\n")
    monkeypatch.setattr("keepstep.store.places._MOUNTS", mounts)
    with pytest.raises(CannotOpen, match=r"network file system \(nfs4\).*PostgreSQL"):
        opened(tmp_path / "runs.db")
    assert not (tmp_path / "runs.db").exists()
    monkeypatch.setattr("keepstep.store.places._MOUNTS", tmp_path / "missing")
    assert file_system_of(tmp_path) is None
    done(opened(tmp_path / "runs.db").close())


def test_this_place_is_none():
    assert file_system_of(Path("/")) not in NETWORK


def test_a_folder_is_wanted_where_a_file_stands(tmp_path):
    (tmp_path / "file").touch()
    check_place(str(tmp_path), is_file=False)
    with pytest.raises(CannotOpen, match="needs a folder"):
        check_place(tmp_path / "file", is_file=False)


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EMFILE]
)
def test_what_the_system_says_is_told_with_the_path(number):
    assert "here.db" in str(cannot_open("here.db", OSError(number, os.strerror(number))))


def test_a_fork_does_not_wait_for_itself(store, monkeypatch):
    monkeypatch.setattr(connections, "FORK_SECONDS", 0.01)

    def fork(view):
        if os.fork() == 0:
            os._exit(0)
        os.wait()

    log = Log("r")
    assert len(done(store.commit([log.opened(), claiming("r", "o")._replace(decide=fork)]))) == 2
    assert done(store.view("r")).row.seq == 1
