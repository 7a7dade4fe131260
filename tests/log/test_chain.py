"""The chain: whatever is changed, missing or moved in a log is named where it is, and nothing else is blamed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from keepstep.log.chain import DIGEST_BYTES, Damage, Stored, Walk, digest_after, digest_of, genesis
from keepstep.log.fold import Folding
from keepstep.log.grow import Draft, grow
from keepstep.log.records import Began, Claimed, Noted, Opened, Released, Returned, Saved
from tests.log.record_examples import KEY


def log_of(run_id: str, *, mark: bytes = b"") -> list[Stored]:
    """Eight records; `mark` makes their bodies differ from those of another log."""
    drafts = [
        Draft(Opened(workflow="w")),
        Draft(Claimed(owner="owner-1", epoch=1)),
        Draft(Saved(step=1), b"state 1" + mark),
        Draft(Began(key=KEY, tool="charge"), b"arguments" + mark),
        Draft(Returned(key=KEY, began=4), b"result" + mark),
        Draft(Saved(step=2, parent=3), b"state 2" + mark),
        Draft(Noted(namespace="progress"), b"note" + mark),
        Draft(Released()),
    ]
    return grow(Folding(), run_id, drafts, now_us=1000, batch=b"8 random", epoch=1, holder=True).records


def damage_in(run_id: str, log: Sequence[Stored]) -> list[Damage]:
    walk = Walk(run_id)
    return [one for stored in log for one in walk.step(stored)[1]]


def blamed(log: Sequence[Stored]) -> set[int]:
    return {one.seq for one in damage_in("r", log)}


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes((data[place] ^ 0x15,)) + data[place + 1 :]


LOG = log_of("r")


def with_record(log: list[Stored], seq: int, **changed: object) -> list[Stored]:
    return [one._replace(**changed) if one.seq == seq else one for one in log]


def test_the_digests_are_pinned_to_the_byte():
    first = digest_after(genesis("r"), b"a head")
    assert genesis("r").hex() == "07a91b1b3acdac9e0bbc0b7a07e43abc"
    assert first.hex() == "a4d09bf184335b04c9cc6dbcf6c3f22c"
    assert digest_of(b"a body").hex() == "1e414c9d41e80a409d16340bf8723610"
    assert len(first) == DIGEST_BYTES


def test_runs_with_other_ids_have_other_beginnings():
    ids = ["r", "R", "r ", "é", "e\u0301", "\ud800", "", "a/b"]
    assert len({genesis(one) for one in ids}) == len(ids)


def test_a_whole_log_has_no_damage():
    walk = Walk("r")
    records = [walk.step(one) for one in LOG]
    assert [damage for _, damage in records] == [[]] * len(LOG)
    assert [record.seq for record, _ in records if record is not None] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert (walk.seq, walk.digest) == (8, LOG[-1].digest)


def test_a_body_that_retention_dropped_is_no_damage_of_the_chain():
    assert blamed(with_record(LOG, 3, body=None)) == set()


@pytest.mark.parametrize("seq", range(1, 9))
def test_a_byte_changed_in_a_head_is_named_and_nothing_else_is(seq: int):
    head = LOG[seq - 1].head
    for place in range(len(head)):
        assert blamed(with_record(LOG, seq, head=flipped(head, place))) == {seq}


@pytest.mark.parametrize("seq", range(1, 9))
def test_a_byte_changed_in_a_digest_is_named_and_nothing_else_is(seq: int):
    digest = LOG[seq - 1].digest
    for place in range(len(digest)):
        assert blamed(with_record(LOG, seq, digest=flipped(digest, place))) == {seq}


@pytest.mark.parametrize("seq", [3, 4, 5, 6, 7])
def test_a_byte_changed_in_a_body_is_named_and_nothing_else_is(seq: int):
    body = LOG[seq - 1].body
    assert body is not None
    for place in range(len(body)):
        assert blamed(with_record(LOG, seq, body=flipped(body, place))) == {seq}


@pytest.mark.parametrize("seq", range(1, 9))
def test_a_head_or_digest_that_is_cut_off_anywhere_is_named(seq: int):
    for length in range(len(LOG[seq - 1].head)):
        assert blamed(with_record(LOG, seq, head=LOG[seq - 1].head[:length])) == {seq}
    for length in range(DIGEST_BYTES):
        assert blamed(with_record(LOG, seq, digest=LOG[seq - 1].digest[:length])) == {seq}


def test_a_body_that_is_cut_off_or_longer_is_named_with_its_length():
    [cut_off] = damage_in("r", with_record(LOG, 3, body=b"state"))
    [longer] = damage_in("r", with_record(LOG, 3, body=b"state 1 and more"))
    assert cut_off == Damage(3, "its body has 5 bytes instead of 7")
    assert longer == Damage(3, "its body has 16 bytes instead of 7")


def test_a_body_where_none_belongs_is_named():
    assert damage_in("r", with_record(LOG, 8, body=b"x")) == [Damage(8, "it has a body that its head does not name")]


def test_two_bodies_that_were_swapped_are_both_named():
    swapped = with_record(with_record(LOG, 3, body=LOG[5].body), 6, body=LOG[2].body)
    assert blamed(swapped) == {3, 6}


@pytest.mark.parametrize("seq", range(1, 8))
def test_a_missing_record_is_named(seq: int):
    log = [one for one in LOG if one.seq != seq]
    assert damage_in("r", log) == [Damage(seq, f"record {seq} is missing")]


def test_several_missing_records_are_named_together():
    log = [one for one in LOG if one.seq not in (3, 4, 5)]
    assert damage_in("r", log) == [Damage(3, "records 3 to 5 are missing")]


def test_damage_behind_a_gap_is_named_too():
    log = [one for one in with_record(LOG, 6, head=flipped(LOG[5].head, 12)) if one.seq != 4]
    assert blamed(log) == {4, 6}


@pytest.mark.parametrize("seq", range(1, 8))
def test_two_records_that_were_swapped_are_named(seq: int):
    first, second = LOG[seq - 1], LOG[seq]
    log = [*LOG[: seq - 1], second._replace(seq=seq), first._replace(seq=seq + 1), *LOG[seq + 1 :]]
    assert {seq, seq + 1} <= blamed(log)


def test_a_record_that_comes_twice_is_named():
    log = [*LOG[:4], LOG[3], *LOG[4:]]
    assert Damage(5, "record 4 comes out of order") in damage_in("r", log)


@pytest.mark.parametrize("seq", range(1, 9))
def test_a_record_from_another_run_is_named(seq: int):
    other = log_of("other")
    assert seq in blamed([*LOG[: seq - 1], other[seq - 1], *LOG[seq:]])


def test_the_log_of_another_run_is_named_at_its_first_record():
    assert {one.seq for one in damage_in("r", log_of("other"))} == {1}


def test_a_body_from_another_run_is_named():
    assert blamed(with_record(LOG, 3, body=log_of("other", mark=b"!")[2].body)) == {3}


def test_a_log_that_was_written_anew_ends_in_another_digest():
    walk = Walk("r")
    for one in log_of("r", mark=b"!"):
        assert walk.step(one)[1] == []
    assert walk.digest != LOG[-1].digest


def test_every_damage_is_named_when_there_is_more_than_one():
    log = with_record(with_record(LOG, 2, head=b"junk"), 5, body=b"junk")
    log = with_record(log, 7, digest=b"D" * DIGEST_BYTES)
    assert blamed(log) == {2, 5, 7}
