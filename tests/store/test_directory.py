"""The folder of a store: how it is opened, what lies in it, who may see it, and who is alive."""

from __future__ import annotations

import json
import stat

import pytest

from keepstep.errors import BadInput, CannotOpen, Damaged, NewerFormat, NotAStore, ReadOnly, WrongUse
from keepstep.store.base import Query
from keepstep.store.conformance.bench import drive
from keepstep.store.conformance.pen import Pen
from keepstep.store.conformance.turned_clock import TurnedClock
from keepstep.store.directory import DirectoryStore
from tests.store.directories import opened, run_file, run_with, tree, write


def test_a_store_is_a_folder_for_its_user_alone(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 1)
    drive(store.enlist("ann", 30))
    places = [store.path, *store.path.rglob("*")]
    assert {stat.S_IMODE(one.stat().st_mode) for one in places if one.is_dir()} == {0o700}
    assert {stat.S_IMODE(one.stat().st_mode) for one in places if one.is_file()} == {0o600}


def test_the_marker_says_what_it_is(tmp_path) -> None:
    store = opened(tmp_path / "store")
    assert json.loads((store.path / "keepstep.json").read_text()) == {"keepstep": "directory", "format": 1}
    assert store.url == f"dir:{tmp_path}/store"


def test_an_empty_folder_becomes_a_store(tmp_path) -> None:
    run_with(opened(tmp_path), 1)
    assert (tmp_path / "keepstep.json").exists()


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(NotAStore, match=r"photo\.jpg"):
        opened(tmp_path)
    assert tree(tmp_path) == {"photo.jpg": b"x"}


def test_a_folder_with_runs_of_something_else_is_refused(tmp_path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "marathon.csv").write_bytes(b"x")
    with pytest.raises(NotAStore, match="'runs' with files"):
        opened(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"keepstep":"sqlite","format":1}', "\0"])
def test_a_foreign_marker_is_refused(tmp_path, text) -> None:
    (tmp_path / "keepstep.json").write_text(text)
    with pytest.raises(NotAStore, match=r"keepstep\.json"):
        opened(tmp_path)


def test_a_store_that_was_being_created_is_finished(tmp_path) -> None:
    for name in ("lock", "keepstep.json.tmp"):
        (tmp_path / name).touch()
    (tmp_path / "runs").mkdir()
    run_with(opened(tmp_path), 1)


def test_a_newer_store_is_opened_only_for_reading(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 1)
    (store.path / "keepstep.json").write_text('{"keepstep":"directory","format":2,"more":true}')
    with pytest.raises(NewerFormat, match="format 2"):
        opened(store.path)
    assert drive(opened(store.path, read_only=True).view("r")).row is not None


def test_a_place_where_no_store_can_be_is_refused(tmp_path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotOpen, match="is a file"):
        opened(tmp_path / "file")
    with pytest.raises(CannotOpen, match="does not exist"):
        opened(tmp_path / "no" / "parent")
    with pytest.raises(CannotOpen, match="no store at"):
        opened(tmp_path / "none", read_only=True)
    with pytest.raises(NotAStore, match=r"no keepstep\.json"):
        opened(tmp_path, read_only=True)


def test_reading_writes_nothing(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 2)
    with run_file(store).open("ab") as file:
        file.write(b'{"torn')
    before = tree(store.path)
    reader = opened(store.path, read_only=True)
    assert drive(reader.view("r")).row == pen.row.freeze()
    drive(reader.records("r"))
    drive(reader.rows(Query(due=True), None, 9))
    drive(reader.effects("r"))
    drive(reader.size(None))
    drive(reader.changes(1, 0.01))
    drive(reader.close())
    assert tree(store.path) == before
    with pytest.raises(ReadOnly, match="open for reading"):
        drive(reader.commit([]))


def test_a_copy_without_a_lock_file_can_be_read(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 2)
    (store.path / "lock").unlink()
    assert drive(opened(store.path, read_only=True).view("r")).row == pen.row.freeze()
    assert not (store.path / "lock").exists()


def test_a_closed_store_says_so(tmp_path) -> None:
    store = opened(tmp_path / "store")
    drive(store.close())
    with pytest.raises(WrongUse, match="closed"):
        drive(store.view("r"))


def test_a_store_that_closes_without_retiring_shows_its_owner_dead_at_once(tmp_path) -> None:
    store, other = opened(tmp_path / "store"), opened(tmp_path / "store")
    pen = run_with(store, 0)
    drive(store.enlist("ann", 30))
    write(store, pen.claim("ann"))
    holder = drive(other.view("r")).holder
    assert holder is not None
    assert holder.stands
    drive(store.close())
    holder = drive(other.view("r")).holder
    assert holder is not None
    assert not holder.stands
    assert holder.until_us > other._clock.now_us()


def test_a_new_owner_clears_the_dead_away(tmp_path) -> None:
    for number in range(3):
        store = opened(tmp_path / "store")
        drive(store.enlist(f"owner {number}", 30))
        drive(store.close())
    store = opened(tmp_path / "store")
    drive(store.enlist("alive", 30))
    assert [one.name for one in (store.path / "leases").iterdir()] == ["alive.json"]
    assert len(list((store.path / "owners").iterdir())) == 1


def test_drafts_of_dead_writers_are_thrown_away(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 1)
    draft = store.path / "runs" / "r.jsonl.tmp"
    draft.write_bytes(b"half")
    assert [row.run_id for row in drive(store.rows(Query(), None, 9)).rows] == ["r"]
    opened(store.path)
    assert not draft.exists()


def test_a_backup_goes_to_a_new_place_only(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 2)
    drive(store.backup(str(tmp_path / "copy")))
    runs = {name: data for name, data in tree(store.path).items() if name.startswith("runs/")}
    assert {name: data for name, data in tree(tmp_path / "copy").items() if name.startswith("runs/")} == runs
    with pytest.raises(BadInput, match="not empty"):
        drive(store.backup(str(tmp_path / "copy")))
    with pytest.raises(CannotOpen):
        drive(store.backup(str(tmp_path / "no" / "parent")))


def test_a_backup_holds_no_owners(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 0)
    drive(store.enlist("ann", 30))
    write(store, pen.claim("ann"))
    drive(store.backup(str(tmp_path / "copy")))
    holder = drive(opened(tmp_path / "copy").view("r")).holder
    assert holder is not None
    assert not holder.stands


def test_a_run_file_under_another_name_is_damage(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 1)
    run_file(store, "copy").write_bytes(run_file(store).read_bytes())
    with pytest.raises(Damaged, match=r"copy\.jsonl, line 1: it belongs to run 'r'"):
        drive(store.view("copy"))


def test_other_files_among_the_runs_are_left_alone(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 1)
    for name in (".r.jsonl.swp", "r.jsonl~", "notes.txt"):
        (store.path / "runs" / name).write_bytes(b"x")
    assert [row.run_id for row in drive(store.rows(Query(), None, 9)).rows] == ["r"]


def test_changes_are_counted_in_a_file_that_people_can_read(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 2)
    assert (store.path / "changes").read_text() == "00000000000000000003\n"
    (store.path / "changes").write_bytes(b"\0\0")  # as a loss of power may leave it
    assert drive(store.changes(None, 0)) == 0
    run_with(store, 0, "other")
    assert drive(store.changes(None, 0)) == 1


def test_a_run_that_did_not_change_is_not_read_again(tmp_path, monkeypatch) -> None:
    store, other = opened(tmp_path / "store"), opened(tmp_path / "store")
    pen = run_with(store, 50, body=bytes(10_000))
    counted: list[int] = []
    read = store._files.read
    monkeypatch.setattr(
        store._files, "read", lambda fd, count, offset: counted.append(count) or read(fd, count, offset)
    )
    for _ in range(10):
        write(store, pen.save(b"small"))
        drive(store.view("r"))
    assert sum(counted) < 1000  # the count of changes, and no line
    write(other, pen.save(b"small"))
    drive(store.view("r"))
    assert sum(counted) < 5000  # what the other one wrote


def test_a_file_that_was_replaced_is_read_anew(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 3)
    drive(store.view("r"))
    text = run_file(store).read_bytes()
    draft = tmp_path / "draft"
    draft.write_bytes(b"".join(text.splitlines(keepends=True)[:2]))
    draft.rename(run_file(store))
    row = drive(store.view("r")).row
    assert row is not None
    assert row.seq == 2


def test_only_so_many_files_are_remembered(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("keepstep.store.directory.store.FILES_KNOWN_MAX", 3)
    store = opened(tmp_path / "store")
    pens = [run_with(store, 1, f"r{number}") for number in range(8)]
    assert len(store._known) == 3
    assert len(drive(store.rows(Query(), None, 99)).rows) == 8
    for pen in pens:
        write(store, pen.save())


def test_ids_that_no_file_could_hold_are_refused(tmp_path) -> None:
    store = opened(tmp_path / "store")
    with pytest.raises(BadInput, match="surrogate"):
        drive(store.view("\ud800"))


def test_a_path_may_be_relative(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = DirectoryStore("store", TurnedClock())
    drive(store.open())
    monkeypatch.chdir("/")
    write(store, Pen("r", TurnedClock()).open())
    assert (tmp_path / "store" / "runs" / "r.jsonl").exists()
    assert [one.name for one in tmp_path.iterdir()] == ["store"]
