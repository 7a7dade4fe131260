"""Torn tails are cut before the next commit; everything else that is wrong is damage, and is never cut."""

from __future__ import annotations

import os

import pytest

from keepstep.errors import Damaged
from keepstep.log.fold import Folding
from keepstep.log.records import Pruned
from keepstep.store.base import Query
from keepstep.store.conformance.bench import drive
from keepstep.store.conformance.pen import claiming
from keepstep.store.directory import DirectoryStore
from keepstep.store.directory.lines import commit_line
from tests.store.directories import opened, run_file, run_with, write


def seqs(store: DirectoryStore) -> list[int]:
    return [one.seq for one in drive(store.records("r"))]


def damaged(store: DirectoryStore, line: int) -> bytes:
    """Change one byte in the middle of a line."""
    lines = run_file(store).read_bytes().splitlines(keepends=True)
    text = bytearray(lines[line - 1])
    text[len(text) // 2] ^= 1
    lines[line - 1] = bytes(text)
    run_file(store).write_bytes(b"".join(lines))
    return b"".join(lines)


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(
    "tail", [b"{", b'{"run":"r","batch":9', b"\0" * 5000, b"\n", b"{}\n", b"{}\n\n{}\nhalf", b"x\n"]
)
def test_a_torn_tail_is_not_read_and_cut_before_the_next_commit(tmp_path, tail: bytes, fresh: bool) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 2)
    whole = run_file(store).read_bytes()
    run_file(store).write_bytes(whole + tail)
    if fresh:
        store = opened(store.path)
    assert drive(store.view("r")).row == pen.row.freeze()
    assert seqs(store) == [1, 2, 3]
    assert run_file(store).read_bytes() == whole + tail
    write(store, pen.save())
    assert run_file(store).read_bytes().startswith(whole + b'{"run":"r","batch":4,')
    assert len(run_file(store).read_bytes().splitlines()) == 4
    assert seqs(opened(store.path)) == [1, 2, 3, 4]


def test_every_torn_length_of_the_last_line_leaves_the_commit_before(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 1)
    before = pen.row.freeze()
    start = run_file(store).stat().st_size
    write(store, pen.save())
    text = run_file(store).read_bytes()
    for end in range(start, len(text)):
        run_file(store).write_bytes(text[:end])
        assert drive(store.view("r")).row == before
        assert drive(opened(store.path, read_only=True).view("r")).row == before


def test_a_run_whose_first_line_is_torn_was_never_there(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 0)
    text = run_file(store).read_bytes()
    for end in (0, 1, len(text) // 2, len(text) - 1):
        run_file(store).write_bytes(text[:end])
        store = opened(store.path)
        assert drive(store.view("r")).row is None
        assert drive(store.rows(Query(), None, 9)).rows == []
        pen = run_with(store, 1)
        assert drive(store.view("r")).row == pen.row.freeze()
        assert len(run_file(store).read_bytes().splitlines()) == 2


@pytest.mark.parametrize("line", [1, 2, 3])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_wrong_line_before_whole_ones_is_damage(tmp_path, line: int, fresh: bool) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 3)
    text = damaged(store, line)
    store = opened(store.path) if fresh else store
    late = pen.copy().save()
    for attempt in (lambda: drive(store.view("r")), lambda: drive(store.commit([late]))):
        with pytest.raises(Damaged, match=rf"runs/r\.jsonl, line {line}: "):
            attempt()
    assert run_file(store).read_bytes() == text
    assert seqs(store) == [seq for seq in (1, 2, 3, 4) if seq != line]


def test_a_line_that_is_missing_or_out_of_order_is_damage(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 3)
    lines = run_file(store).read_bytes().splitlines(keepends=True)
    for order in ((0, 2, 3), (1, 2, 3), (0, 1, 1, 2, 3), (0, 2, 1, 3)):
        run_file(store).write_bytes(b"".join(lines[place] for place in order))
        with pytest.raises(Damaged, match="it has records"):
            drive(opened(store.path).view("r"))


def test_a_damaged_run_harms_no_other(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 3)
    damaged(store, 2)
    pen = run_with(store, 1, "other")
    store = opened(store.path)
    listed = {row.run_id: row.fold.seq for row in drive(store.rows(Query(), None, 9)).rows}
    assert listed == {"r": 4, "other": 2}
    claimed = drive(store.claim(None, 9, claiming(pen.clock, "worker")))
    assert [one.append.run_id for one in claimed if one.append is not None] == ["other"]


def test_a_damaged_run_can_be_deleted(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 3)
    damaged(store, 2)
    assert drive(store.delete("r", lambda view: None)) is True
    assert drive(store.view("r")).buried == (1, 0)


def test_damage_that_comes_after_reading_is_found_when_it_is_read(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 3)
    text = run_file(store).read_bytes()
    stamp = run_file(store).stat()
    with run_file(store).open("r+b") as file:
        file.seek(len(text) // 8)
        file.write(b"#")
    os.utime(run_file(store), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(Damaged, match=r"line 1: its check is no longer"):
        drive(store.records("r"))
    with pytest.raises(Damaged, match="line 1"):
        write(store, pen.append(Pruned(), dropped=[(1, 1)]))


def test_a_row_that_is_behind_its_records_is_damage(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 0)
    append = pen.save()
    line = commit_line("r", 2, append.records, Folding(seq=1), [])
    run_file(store).write_bytes(run_file(store).read_bytes() + line)
    with pytest.raises(Damaged, match="line 2: its row ends at record 1, not at 2"):
        drive(store.view("r"))


def test_pruning_leaves_the_other_lines_as_they_are(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 3)
    before = run_file(store).read_bytes().splitlines()
    write(store, pen.append(Pruned(dropped=[(2, 3)]), dropped=[(2, 3)]))
    after = run_file(store).read_bytes().splitlines()
    assert (after[0], after[3]) == (before[0], before[3])
    assert len(after[1]) < len(before[1])
    assert len(after) == 5
