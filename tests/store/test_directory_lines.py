"""The lines of a run's file: for people and `jq` to read, and exact."""

from __future__ import annotations

import base64
import json
from hashlib import blake2b
from typing import Any

import jq
from hypothesis import given
from hypothesis import strategies as st

from keepstep.log.chain import Stored
from keepstep.log.fold import Folding
from keepstep.log.grow import Draft, grow
from keepstep.log.ledger import LedgerEntry
from keepstep.log.records import Began, Claimed, Noted, Opened, Pruned, Saved, Tagged, encode_head
from keepstep.store.conformance.bench import drive
from keepstep.store.directory.lines import (
    Tombstone,
    commit_line,
    is_whole,
    outline,
    records_in,
    renewed_line,
    tombstone_line,
)
from tests.store.directories import opened, run_file, run_with, write


def test_a_line_is_as_the_format_says(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 1, body=b"\x00state")
    (append,) = write(store, pen.append(Draft(Began(key=b"k" * 16, tool="pay"))))
    assert append is not None
    first, second, third = run_file(store).read_bytes().splitlines(keepends=True)
    line = json.loads(second)
    assert list(line) == ["run", "batch", "records", "row", "ledger", "check"]
    assert (line["run"], line["batch"], line["ledger"]) == ("r", 2, [])
    (record,) = line["records"]
    assert list(record) == ["seq", "head", "digest", "body"]
    assert base64.b64decode(record["body"]) == b"\x00state"
    assert list(record["head"])[:8] == ["format", "kind", "seq", "at_us", "epoch", "batch", "body", "body_bytes"]
    assert (record["head"]["format"], record["head"]["kind"], record["head"]["step"]) == (1, "saved", 1)
    assert record["head"]["body"] == "hex:" + blake2b(b"\x00state", digest_size=16).hexdigest()
    assert (line["row"]["status"], line["row"]["step"], line["row"]["seq"]) == ("ready", 1, 2)
    assert line["row"]["digest"] == "hex:" + record["digest"]
    content, _, check = second.rpartition(b',"check":"')
    assert check == blake2b(content, digest_size=16).hexdigest().encode() + b'"}\n'
    assert json.loads(third)["ledger"] == [{"key": (b"k" * 16).hex(), "began": 3, "ended": 0, "how": "began"}]
    assert json.loads(first)["batch"] == 1


def test_a_transaction_is_one_line_per_run(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen, other = run_with(store, 0), run_with(store, 0, "other")
    write(store, pen.save(), other.save(), pen.save(label="x"), pen.save(label="x"))
    lines = [json.loads(one) for one in run_file(store).read_bytes().splitlines()]
    assert [[record["seq"] for record in line["records"]] for line in lines] == [[1], [2, 3, 4]]
    assert [entry["began"] for entry in lines[1]["ledger"]] == [4]
    (twin,) = [json.loads(one) for one in run_file(store, "other").read_bytes().splitlines()[1:]]
    assert twin["batch"] == lines[1]["batch"] == 3


def test_a_deleted_run_is_one_line(tmp_path) -> None:
    store = opened(tmp_path / "store")
    pen = run_with(store, 5)
    write(store, pen.claim("ann"))
    drive(store.delete("r", lambda view: None))
    (line,) = run_file(store).read_bytes().splitlines()
    stone = json.loads(line)
    assert list(stone) == ["run", "batch", "tombstone", "check"]
    assert stone["tombstone"] == {"incarnation": 1, "epoch": 1, "at_us": store._clock.now_us()}


def test_jq_reads_it(tmp_path) -> None:
    store = opened(tmp_path / "store")
    run_with(store, 3)
    program: Any = jq.compile(".records[].head.kind")
    assert program.input_text(run_file(store).read_text("utf-8")).all() == ["opened", *["saved"] * 3]


def lines_of(*drafts: Draft, run_id: str = "r") -> tuple[list[Stored], bytes]:
    row = Folding()
    opened = Draft(Opened(workflow="w"), b"input")
    grown = grow(row, run_id, [opened, *drafts], now_us=1, batch=b"b" * 16, epoch=0, holder=True)
    return grown.records, commit_line(run_id, 7, grown.records, row, grown.ledger)[:-1]


TAGS = st.dictionaries(st.text(), st.one_of(st.text(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.booleans()))
DRAFTS = st.lists(
    st.one_of(
        st.builds(lambda tags: Draft(Tagged(tags=tags)), TAGS),
        st.builds(lambda text, body: Draft(Noted(namespace=text, key=text), body), st.text(), st.binary()),
        st.builds(lambda text, step: Draft(Saved(step=step, label=text, depth=1)), st.text(), st.integers(0, 2**63)),
        st.builds(lambda key, tool: Draft(Began(key=key, tool=tool)), st.binary(max_size=20), st.text()),
        st.builds(lambda text: Draft(Noted(namespace="n", key="hex:" + text)), st.text("0123456789abcdefABCDEF \tg")),
        st.builds(lambda digest: Draft(Pruned(renewed=[(1, digest, 2, 0, [3])])), st.binary(min_size=16, max_size=16)),
    ),
    max_size=6,
)


@given(DRAFTS)
def test_heads_bodies_and_rows_come_back_to_the_byte(drafts: list[Draft]) -> None:
    records, line = lines_of(*drafts)
    assert is_whole(line)
    assert b"\n" not in line
    json.loads(line)
    assert records_in(line) == records
    said = outline(line)
    assert [one.seq for one in said.records] == [one.seq for one in records]
    assert said.fold().seq == records[-1].seq
    assert said.fold().digest == records[-1].digest


def test_a_row_comes_back_to_the_byte() -> None:
    row = Folding(status="paused", workflow="\u2028\0", digest=b"\xff" * 16, owner="hex:00", flow_fingerprint=b"")
    row.tags = {"hex:aa": float("inf"), "n": -0.0}
    row.open_effects, row.doubts, row.jumps = {b"": 1, b"k": 2}, {b"hex:": 3}, [(1, 2, 3)]
    line = commit_line("r", 1, [], row, [])[:-1]
    assert repr(outline(line).fold()) == repr(row.freeze())


def test_what_json_says_exactly_is_not_said_twice() -> None:
    _, line = lines_of(Draft(Tagged(tags={"a": 1.5})), Draft(Claimed(owner="ann")))
    assert b'"raw"' not in line
    assert b'"row_raw"' not in line
    _, line = lines_of(Draft(Tagged(tags={"a": float("nan")})))
    said = json.loads(line)
    assert [sorted(one) for one in said["records"]][1] == ["digest", "head", "raw", "seq"]
    assert base64.b64decode(said["records"][1]["raw"]) == records_in(line)[1].head
    assert "row_raw" in said


def test_a_field_that_this_version_does_not_know_comes_back_all_the_same() -> None:
    head = encode_head(Noted(namespace="n", seq=1))
    longer = head[:2] + bytes((head[2] + 1,)) + head[3:] + b"\xa3new"  # one value more in the array
    line = commit_line("r", 1, [Stored(1, longer, bytes(16))], Folding(), [])[:-1]
    assert records_in(line)[0].head == longer


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_any_changed_byte_is_seen(place: int, change: int) -> None:
    _, line = lines_of(Draft(Noted(namespace="n"), b"body"))
    broken = bytearray(line)
    broken[place % len(line)] ^= change
    assert not is_whole(bytes(broken))
    assert not is_whole(line[: place % len(line)])


def test_bodies_are_changed_and_nothing_else() -> None:
    records, line = lines_of(Draft(Noted(namespace="n"), b"two"), Draft(Noted(namespace="n"), b"three"))
    changed = renewed_line(line, {1: None, 3: b"III", 9: None})[:-1]
    assert is_whole(changed)
    assert [one.body for one in records_in(changed)] == [None, b"two", b"III"]
    assert [one._replace(body=None) for one in records_in(changed)] == [one._replace(body=None) for one in records]
    assert outline(changed).row == outline(line).row


def test_a_tombstone_line_says_what_is_left() -> None:
    line = tombstone_line("r", 3, Tombstone(2, 5, 99))
    assert is_whole(line[:-1])
    assert outline(line[:-1]).tombstone == Tombstone(2, 5, 99)


def test_the_ledger_comes_back() -> None:
    entry = LedgerEntry(b"\x00\xff", 1, 2, "returned")
    line = commit_line("r", 1, [], Folding(), [entry])[:-1]
    assert [one.entry() for one in outline(line).ledger] == [entry]
