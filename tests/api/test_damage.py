"""Whatever becomes of stored bytes is found and named; what is whole can be read, and nothing wrong is returned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

import keepstep
from keepstep.codec.framer import DELTA, KEY
from keepstep.log.chain import DIGEST_BYTES, Stored
from keepstep.log.records import Saved, decode_head
from tests.conftest import MODES
from tests.damage import Change, change_row_bytes, rewrite, rewrite_row
from tests.places import Place

TEXT = "a sentence that is long enough for a change of it to be worth a delta frame, " * 3
SAMPLE = 30
"""How many places are damaged in the slower stores; the one in memory goes through them all."""
WHERE = re.compile(r"Record \d+ of run 'r'|row of run 'r'|runs/r\.jsonl, line \d+")
WHAT_TO_DO = re.compile(r"(?i)verify|backup|upgrade")


class Whole(NamedTuple):
    """A run as it was before any damage."""

    checkpoints: dict[int, keepstep.Checkpoint]
    look: keepstep.Look
    seqs: list[int]


@pytest.fixture
def whole(place: Place) -> Whole:
    return live(place)


def live(place: Place) -> Whole:
    """Six checkpoints in key and delta frames, with tags, notes, a label and an end."""
    store = place.open()
    with store.run("r", "w") as run:
        log: list[str] = []
        for number in range(6):
            place.clock.turn(1)
            log.append(f"{TEXT}{number}")
            # The fourth state is so small that it is stored whole, and so is the one after it.
            state = {"n": number, "log": [*log], "who": {"name": "ada"}} if number != 3 else {"n": number}
            run.save(state, next=f"step {number}", label="middle" if number == 2 else None)
            if number == 1:
                run.tag(customer="ada")
            if number == 4:
                run.note({"done": number})
        run.finish({"answer": 42})
    checkpoints = {one.seq: store.at("r", seq=one.seq) for one in store.history("r").items}
    heads = [decode_head(one.head) for one in records_of(place, store).values()]
    assert [head.frame for head in heads if isinstance(head, Saved)] == [KEY, DELTA, DELTA, KEY, KEY, DELTA]
    return Whole(checkpoints, store.look("r"), list(range(1, store.look("r").seq + 1)))


def opened(place: Place) -> Any:
    """The store that is open, in which the run was made."""
    return place._opened[-1]


def records_of(place: Place, store: Any) -> dict[int, Stored]:
    found: dict[int, Stored] = {}

    def look(records: dict[int, Stored]) -> dict[int, Stored]:
        found.update(records)
        return records

    rewrite(place, store, "r", look)
    return found


# --- what every reader is owed ---------------------------------------------------------------------------------------


def survey(store: keepstep.Store, whole: Whole) -> keepstep.Verification:
    """Read all there is: each answer is exact, or says what is damaged. The newest good checkpoint can be read."""
    report = store.verify("r")
    assert not report.ok
    readable: set[int] = set()
    for seq, checkpoint in whole.checkpoints.items():
        expected = besides_workflow(checkpoint)
        if same_or_damaged(lambda seq=seq: besides_workflow(store.at("r", seq=seq)), expected):
            readable.add(seq)
        same_or_damaged(lambda step=checkpoint.step: besides_workflow(store.at("r", step=step)), expected)
    if report.last_good is not None:
        assert report.last_good in readable
    assert all(seq <= (report.last_good or 0) for seq in readable - {one.seq for one in report.damage})
    newest = max(whole.checkpoints.values(), key=lambda one: one.seq)
    same_or_damaged(lambda: told(store.load("r")), told(newest))
    same_or_damaged(lambda: told(store.look("r")), told(whole.look))
    middle = next(one for one in whole.checkpoints.values() if one.label == "middle")
    same_or_damaged(lambda: told(store.at("r", label="middle")), told(middle))
    return report


def same_or_damaged(read: Callable[[], Any], expected: Any) -> bool:
    """Whether reading gives what was there; otherwise it says where the damage is, and what to do."""
    try:
        found = read()
    except keepstep.NoSuchRun:
        return False  # its row is gone, and says so
    except (keepstep.Damaged, keepstep.NewerFormat) as error:
        message = str(error)
        names_it = WHERE.search(message) or isinstance(error, keepstep.NewerFormat)
    else:
        assert found == expected
        return True
    assert names_it, message
    assert WHAT_TO_DO.search(message), message
    return False


def besides_workflow(checkpoint: keepstep.Checkpoint) -> dict[str, Any]:
    """All of a checkpoint but the workflow's name, which is empty when neither the row nor record 1 can be read."""
    fields = msgspec.structs.asdict(checkpoint)
    assert fields.pop("workflow") in ("w", "")
    return fields


def told(one: Any) -> Any:
    """What a program acts upon."""
    found = [one.state, one.step, one.next, one.label]
    return [*found, one.result, one.note, one.status, one.tags] if isinstance(one, keepstep.Look) else found


def named(report: keepstep.Verification) -> set[int]:
    """Which records are named, apart from the row."""
    return {one.seq for one in report.damage} - {0}


def every(place: Place, cases: list[Any]) -> Iterator[Any]:
    """All cases where they are cheap, otherwise some of them."""
    yield from cases if (place.kind, place.mode) == ("memory", "sync") else Random(1).sample(cases, SAMPLE)


def hurt(seq: int, **fields: Any) -> Change:
    """One record has other bytes."""
    return lambda records: {**records, seq: records[seq]._replace(**fields)}


def undo(whole: dict[int, Stored]) -> Change:
    return lambda records: whole


# --- garbage and truncation ------------------------------------------------------------------------------------------


def flips(records: dict[int, Stored]) -> list[tuple[int, str, int]]:
    fields = ("head", "digest", "body")
    return [(seq, field, at) for seq, one in records.items() for field in fields
            for at in range(len(getattr(one, field) or b""))]  # fmt: skip


def test_a_byte_changed_anywhere_is_found_and_named(place, whole):
    store = opened(place)
    records = records_of(place, store)
    chance = Random(2)
    for seq, field, at in every(place, flips(records)):
        data = bytearray(getattr(records[seq], field))
        data[at] ^= chance.randint(1, 255)
        rewrite(place, store, "r", hurt(seq, **{field: bytes(data)}))

        assert named(survey(store, whole)) == {seq}, (field, at)

        rewrite(place, store, "r", undo(records))
    assert store.verify("r").ok


def test_a_record_cut_off_anywhere_is_found_and_named(place, whole):
    store = opened(place)
    records = records_of(place, store)
    for seq, field, length in every(place, flips(records)):
        if field == "digest" and place.kind in ("sqlite", "postgres"):
            continue  # it stands before the head, in one column
        rewrite(place, store, "r", hurt(seq, **{field: getattr(records[seq], field)[:length]}))

        assert named(survey(store, whole)) == {seq}, (field, length)

        rewrite(place, store, "r", undo(records))


def test_garbage_in_the_place_of_a_record_is_found_and_named(place, whole):
    store = opened(place)
    records = records_of(place, store)
    chance = Random(3)
    for seq in whole.seqs:
        for field in ("head", "body"):
            size = chance.choice((0, 1, 50, 3000))
            rewrite(place, store, "r", hurt(seq, **{field: chance.randbytes(size)}))

            assert named(survey(store, whole)) == {seq}

            rewrite(place, store, "r", undo(records))


def test_a_body_that_is_gone_is_found_and_named(place, whole):
    store = opened(place)
    records = records_of(place, store)
    for seq in [seq for seq, one in records.items() if one.body is not None]:
        rewrite(place, store, "r", hurt(seq, body=None))

        report = survey(store, whole)

        assert named(report) == {seq}
        assert "missing" in report.damage[0].what
        rewrite(place, store, "r", undo(records))


def test_a_head_that_names_another_frame_than_it_did_gives_no_wrong_state(folder):
    with closing(Place("memory", "sync", folder)) as place:
        store = place.open()
        for number in range(8):
            # The fifth state has another text, so it is whole: those after it, put on top of those before, would
            # be as good to look at, and wrong.
            text = TEXT if number < 4 else TEXT[::-1]
            store.save("r", {"text": text, "n": number}, workflow="w")
        whole = store.at("r")
        records = records_of(place, store)
        heads = {seq: decode_head(one.head) for seq, one in records.items()}
        frames = [head.frame for head in heads.values() if isinstance(head, Saved)]
        assert frames == [KEY, DELTA, DELTA, DELTA, KEY, DELTA, DELTA, DELTA]
        for seq, one in records.items():
            for at, byte in product(range(len(one.head)), range(1, 8)):
                head = bytearray(one.head)
                head[at] ^= byte
                rewrite(place, store, "r", hurt(seq, head=bytes(head)))

                same_or_damaged(lambda: store.look("r").state, whole.state)

                rewrite(place, store, "r", undo(records))


# --- missing, out of order, twice ------------------------------------------------------------------------------------


def test_a_missing_record_is_found_and_named(place, whole):
    store = opened(place)
    records = records_of(place, store)
    kept = restoring(place)
    # A last line that is missing is a commit that never ended: see the digest kept elsewhere, below.
    for seq in whole.seqs[:-1] if place.kind == "dir" else whole.seqs:
        rewrite(place, store, "r", lambda records, seq=seq: {at: one for at, one in records.items() if at != seq})

        report = survey(store, whole)

        assert seq in named(report)
        assert {"missing", "ends"} & {word for one in report.damage if one.seq == seq for word in one.what.split()}
        kept()
        rewrite(place, store, "r", undo(records))


def restoring(place: Place) -> Callable[[], None]:
    """Puts files back as they are now, where a record that is missing takes more with it."""
    files = {path: path.read_bytes() for path in (place.path / "runs").iterdir()} if place.kind == "dir" else {}

    def restore() -> None:
        for path, data in files.items():
            path.write_bytes(data)

    return restore


def test_records_that_were_swapped_are_found_and_named(place, whole):
    store = opened(place)
    records = records_of(place, store)
    pairs = [(one, two) for one in whole.seqs for two in whole.seqs if one < two]
    for one, two in every(place, pairs):
        rewrite(place, store, "r", lambda records, one=one, two=two: {**records, one: records[two], two: records[one]})

        assert {one, two} <= named(survey(store, whole))

        rewrite(place, store, "r", undo(records))


def test_a_record_written_over_another_is_found_and_named(place, whole):
    store = opened(place)
    records = records_of(place, store)
    for one, two in every(place, [(one, two) for one in whole.seqs for two in whole.seqs if one != two]):
        rewrite(place, store, "r", lambda records, one=one, two=two: {**records, one: records[two]})

        assert one in named(survey(store, whole))

        rewrite(place, store, "r", undo(records))


# --- the row ---------------------------------------------------------------------------------------------------------

WRONG_ROWS: dict[str, Any] = {
    "status": "failed",
    "workflow": "another",
    "incarnation": 2,
    "epoch": 7,
    "owner": "nobody",
    "step": 5,
    "next": "elsewhere",
    "label": "middle",
    "saved": 4,
    "seq": 5,
    "digest": b"d" * DIGEST_BYTES,
    "jumps": [],
    "tags": {"customer": "eve"},
    "deaths": 1,
    "note": 0,
    "ended": 0,
    "created_us": 1,
    "saved_us": 1,
}


def test_a_row_that_is_not_what_the_log_adds_up_to_is_found(place, whole):
    store = opened(place)
    rows: list[Any] = []
    rewrite_row(place, store, "r", lambda row: (rows.append(row), row)[1])
    for field, value in WRONG_ROWS.items():
        rewrite_row(place, store, "r", lambda row, wrong={field: value}: msgspec.structs.replace(row, **wrong))

        report = store.verify("r")

        assert 0 in {one.seq for one in report.damage}, field
        assert not report.ok
        # The store in memory has no record behind the row's end.
        assert report.last_good == max(whole.checkpoints) or (field, place.kind) == ("seq", "memory")
        assert store.at("r", seq=report.last_good).state == whole.checkpoints[report.last_good].state
        rewrite_row(place, store, "r", lambda row: rows[0])
    assert store.verify("r").ok


@pytest.mark.parametrize("mode", MODES)
def test_a_byte_of_a_row_changed_anywhere_is_found_and_the_log_can_still_be_read(folder, mode):
    with closing(Place("sqlite", mode, folder)) as place:
        _change_every_byte_of_a_row(place)


def _change_every_byte_of_a_row(place: Place) -> None:
    store = place.open()
    store.save("r", {"n": 1}, workflow="w", label="l")
    good = store.at("r")
    kept: list[bytes] = []
    change_row_bytes(place.path, "r", lambda row: (kept.append(row), row)[1])
    for at in range(len(kept[0])):
        change_row_bytes(place.path, "r", lambda row, at=at: flipped(kept[0], at))

        report = store.verify("r")

        assert [(one.seq, report.last_good) for one in report.damage] == [(0, good.seq)]
        assert store.at("r", seq=good.seq) == good
        for read in (store.look, store.load, store.at):
            with pytest.raises(keepstep.Damaged, match=r"row of run 'r'.*(Verify|backup)"):
                read("r")


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


# --- the bytes of a file ---------------------------------------------------------------------------------------------


@pytest.fixture(params=MODES)
def directory(request, folder) -> Iterator[tuple[Place, Any, Whole]]:
    with closing(Place("dir", request.param, folder)) as place:
        whole = live(place)
        yield place, opened(place), whole


def test_a_byte_of_a_line_changed_anywhere_is_found(directory):
    place, store, whole = directory
    path = place.path / "runs" / "r.jsonl"
    text = path.read_bytes()
    last_line = text.rindex(b"\n", 0, -1) + 1
    for at in Random(4).sample(range(last_line), SAMPLE):
        path.write_bytes(flipped(text, at))

        assert survey(store, whole).damage[0].seq == 0, at


def test_lines_missing_swapped_or_twice_are_found(directory):
    place, store, whole = directory
    path = place.path / "runs" / "r.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for at in range(len(lines) - 1):
        for changed in (
            [*lines[:at], *lines[at + 1 :]],
            [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]],
            [*lines[: at + 1], lines[at], *lines[at + 1 :]],
        ):
            path.write_bytes(b"".join(changed))

            survey(store, whole)


def test_a_last_line_that_is_not_whole_is_missed_by_a_digest_kept_elsewhere(directory):
    place, store, whole = directory
    path = place.path / "runs" / "r.jsonl"
    text = path.read_bytes()
    last_line = text.rindex(b"\n", 0, -1) + 1
    damages = [flipped(text, at) for at in range(last_line, len(text), 7)]
    for damaged in (*damages, *(text[:length] for length in range(last_line, len(text), 7))):
        path.write_bytes(damaged)

        report = store.verify("r", expect=whole.look.digest)

        assert [one.what.split(":")[0] for one in report.damage] == [f"the chain has no digest {whole.look.digest}"]
        assert store.look("r").status == "running"
        for seq, checkpoint in whole.checkpoints.items():
            assert store.at("r", seq=seq) == checkpoint
