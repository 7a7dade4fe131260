from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

import apsw
import pytest

from keepstep.errors import CannotOpen, Damaged, NewerFormat, NotAStore, ReadOnly, WrongUse
from keepstep.store.base import Query
from keepstep.store.sqlite import SqliteStore
from keepstep.store.sqlite.connect import PAGE_BYTES
from tests.rights import as_nobody
from tests.store.sqlite.growing import Log, TurnedClock, child, done, opened, said


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_is_its_owners_alone(tmp_path, path):
    before = os.umask(0)
    try:
        store = opened(path)
        done(store.enlist("a" * 24, 5))
        done(store.commit([Log("r").opened()]))
        modes = {one.name: mode(one) for one in tmp_path.iterdir()}
        assert modes.pop("runs.db-owners") == 0o700
        assert mode(tmp_path / "runs.db-owners" / ("a" * 24)) == 0o600
        assert set(modes) == {"runs.db", "runs.db-lock", "runs.db-shm", "runs.db-wal"}
        assert set(modes.values()) == {0o600}
        done(store.retire("a" * 24))
        done(store.close())
    finally:
        os.umask(before)
    assert names(tmp_path) == ["runs.db", "runs.db-lock"]


def test_a_file_is_known_for_what_it_is(path):
    done(opened(path).close())
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA application_id").get == 0x6B737470
    assert connection.execute("PRAGMA user_version").get == 1
    assert connection.execute("PRAGMA journal_mode").get == "wal"
    assert connection.execute("PRAGMA page_size").get == PAGE_BYTES
    assert connection.execute("SELECT value FROM meta WHERE name = 'format'").get == "1"
    connection.close()


def test_a_url_names_the_file(path):
    assert SqliteStore(f"sqlite:{path}", TurnedClock()).url == f"sqlite:{path}"
    assert opened(path).path == str(path)


def test_closing_twice_is_fine_and_a_closed_store_is_told_apart(store):
    done(store.close())
    done(store.close())
    for work in (store.view("r"), store.commit([]), store.rows(Query(), None, 1), store.changes(None, 0)):
        with pytest.raises(WrongUse, match="closed"):
            done(work)


def test_nothing_stays_open_after_close(path):
    store = opened(path)
    done(store.enlist("o", 5))
    done(store.view("r"))
    done(store.changes(None, 0))
    done(store.close())
    held = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
    assert not [one for one in held if str(path) in one]


def test_a_store_may_be_used_without_opening_it_first(path):
    store = SqliteStore(str(path), TurnedClock())
    done(store.commit([Log("r").opened()]))
    assert done(store.view("r")).row.seq == 1
    done(store.close())


@pytest.mark.parametrize("content", [b"hello", b"x" * 100, b"x" * 20_000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path, path, content):
    path.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises((NotAStore, Damaged), match=r"runs\.db"):
            opened(path, read_only=read_only)
    assert path.read_bytes() == content
    assert names(tmp_path) == ["runs.db"]


def test_a_database_of_somebody_else_is_refused_and_left_alone(tmp_path, path):
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    content = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(NotAStore, match="not a store"):
            opened(path, read_only=read_only)
    assert path.read_bytes() == content
    assert names(tmp_path) == ["runs.db"]


def test_an_empty_file_becomes_a_store_but_not_for_reading(path):
    path.touch()
    with pytest.raises(CannotOpen, match="empty"):
        opened(path, read_only=True)
    assert path.stat().st_size == 0
    done(opened(path).close())


def test_a_truncated_store_is_found_out(path):
    store = opened(path)
    done(store.commit([Log(f"r{n}").opened() for n in range(500)]))
    done(store.close())
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(Damaged, match="damaged"):
        done(opened(path).view("r1"))


def test_a_newer_store_is_opened_for_reading_only(path):
    store = opened(path)
    done(store.commit([Log("r").opened()]))
    done(store.close())
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(NewerFormat, match=r"format 2.*Upgrade keepstep"):
        opened(path)
    reader = opened(path, read_only=True)
    assert done(reader.view("r")).row.seq == 1
    done(reader.close())


def test_a_bad_place_is_refused_in_clear_words(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere/at/all")
    for name, words in {
        "no/such/runs.db": "does not exist. Create it",
        "file/runs.db": "not a folder",
        ".": "it is a folder",
        "pipe": "not a regular file",
        "dangling": "Cannot open",
        "a" * 300: "does not take this name",
        "nul\0byte": "null byte",
    }.items():
        with pytest.raises(CannotOpen, match=words):
            opened(tmp_path / name)
    with pytest.raises(CannotOpen, match="no store at"):
        opened(tmp_path / "missing.db", read_only=True)
    assert names(tmp_path) == ["dangling", "file", "pipe"]


@pytest.fixture
def public():
    """A folder that others may enter, and not write."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_place_without_permission_is_refused_in_clear_words(public):
    path = public / "runs.db"
    assert as_nobody(lambda: opened(path)).startswith(f"CannotOpen: Cannot open {path}: permission denied")
    store = opened(path)
    done(store.commit([Log("r").opened()]))
    assert as_nobody(lambda: opened(path)).startswith("CannotOpen")
    assert as_nobody(lambda: opened(path, read_only=True)).startswith("CannotOpen")
    done(store.close())
    path.chmod(0o644)
    assert as_nobody(lambda: opened(path)).startswith(("CannotOpen: Cannot write", "CannotOpen: Cannot open"))
    assert as_nobody(lambda: done(opened(path, read_only=True).view("r")).row.seq) == "gives 1"
    public.chmod(0o777)
    assert as_nobody(lambda: opened(path)).startswith(("CannotOpen: Cannot write", "CannotOpen: Cannot open"))
    path.chmod(0o666)
    public.chmod(0o755)
    assert as_nobody(lambda: opened(path)).startswith("CannotOpen")


def test_a_reader_leaves_no_trace(tmp_path, path):
    store = opened(path)
    done(store.commit([Log("r").opened()]))
    done(store.close())
    (tmp_path / "runs.db-lock").unlink()
    before = path.stat()
    reader = opened(path, read_only=True)
    assert done(reader.view("r")).row.seq == 1
    assert done(reader.changes(None, 0)) == done(reader.changes(None, 0))
    log = Log("s")
    for work in (
        reader.commit([log.opened()]),
        reader.claim(None, 1, lambda view: None),
        reader.delete("r", lambda view: None),
        reader.enlist("o", 1),
        reader.renew("o", 1),
    ):
        with pytest.raises(ReadOnly, match="opened for reading"):
            done(work)
    done(reader.close())
    assert names(tmp_path) == ["runs.db"]
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_reader_follows_writers_that_come_and_go(path):
    done(opened(path).close())
    reader = opened(path, read_only=True)
    log = Log("r")
    seen = done(reader.changes(None, 0))
    for expected in range(1, 5):
        writer = opened(path)
        done(writer.commit([log.opened() if expected == 1 else log.saved()]))
        assert done(reader.view("r")).row.seq == expected
        seen, before = done(reader.changes(seen, 0)), seen
        assert seen != before
        if expected != 3:
            done(writer.close())
            assert done(reader.view("r")).row.seq == expected
    done(reader.close())


def test_a_reader_sees_what_a_killed_writer_left_in_the_log(tmp_path, path):
    code = """
import os
store = opened(sys.argv[1])
done(store.commit([Log("r").opened()]))
os.kill(os.getpid(), 9)
"""
    child(code, path).communicate()
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert before["runs.db-wal"]
    reader = opened(path, read_only=True)
    assert done(reader.view("r")).row.seq == 1
    done(reader.close())
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before
    (tmp_path / "runs.db-shm").unlink()
    with pytest.raises(CannotOpen, match="Open it for writing once"):
        opened(path, read_only=True)
    writer = opened(path)
    assert done(writer.view("r")).row.seq == 1
    done(writer.close())


def test_processes_that_create_a_store_at_once_all_succeed(path):
    code = """
sys.stdin.read(1)
store = opened(sys.argv[1])
done(store.commit([Log(sys.argv[2]).opened()]))
print("ok")
"""
    children = [child(code, path, n) for n in range(6)]
    for one in children:
        assert one.stdin
        one.stdin.write("x")
        one.stdin.flush()
    assert [said(one) for one in children] == ["ok"] * 6
    store = opened(path)
    assert done(store.size(None)).runs == 6
    done(store.close())


def test_a_relative_path_does_not_follow_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("runs.db", TurnedClock())
    monkeypatch.chdir("/")
    done(store.open())
    done(store.close())
    assert Path(tmp_path, "runs.db").exists()
