"""Growing: drafts become records that are numbered, dated, chained, folded and indexed in one step."""

from __future__ import annotations

import pytest

from keepstep.errors import NotAllowed
from keepstep.log.chain import digest_after, digest_of, genesis
from keepstep.log.fold import Folding
from keepstep.log.grow import Draft, grow
from keepstep.log.ledger import LedgerEntry
from keepstep.log.records import Began, Claimed, Noted, Opened, Released, Returned, Saved, decode_head
from tests.log.record_examples import KEY

BATCH = b"batch id"
OPEN_AND_CLAIM = [Draft(Opened(workflow="w")), Draft(Claimed(owner="owner-1", epoch=1))]


def opened(*, now_us: int = 1000) -> Folding:
    row = Folding()
    grow(row, "r", OPEN_AND_CLAIM, now_us=now_us, batch=BATCH, epoch=0, holder=True)
    return row


def test_records_are_numbered_without_gaps_from_one():
    row = Folding()
    stored, _ = grow(
        row, "r", [*OPEN_AND_CLAIM, Draft(Noted(namespace="x"))], now_us=5, batch=BATCH, epoch=0, holder=True
    )
    assert [one.seq for one in stored] == [1, 2, 3]
    assert [decode_head(one.head).seq for one in stored] == [1, 2, 3]
    assert row.seq == 3


def test_the_batch_id_stands_in_the_first_record_of_an_append_only():
    row = opened()
    stored, _ = grow(row, "r", [Draft(Noted(namespace="x"))] * 3, now_us=5, batch=BATCH, epoch=1, holder=True)
    assert [decode_head(one.head).batch for one in stored] == [BATCH, None, None]


def test_every_record_has_the_claims_epoch_unless_it_names_its_own():
    row = opened()
    drafts = [Draft(Noted(namespace="x")), Draft(Claimed(owner="owner-2", epoch=9)), Draft(Noted(namespace="x"))]
    stored, _ = grow(row, "r", drafts, now_us=5, batch=BATCH, epoch=1, holder=True)
    assert [decode_head(one.head).epoch for one in stored] == [1, 9, 1]


def test_a_body_is_named_by_its_digest_and_kept_beside_the_head():
    row = opened()
    drafts = [Draft(Noted(namespace="x"), b"a body"), Draft(Noted(namespace="x"))]
    stored, _ = grow(row, "r", drafts, now_us=5, batch=BATCH, epoch=1, holder=True)
    heads = [decode_head(one.head) for one in stored]
    assert (heads[0].body, heads[0].body_bytes, stored[0].body) == (digest_of(b"a body"), 6, b"a body")
    assert (heads[1].body, heads[1].body_bytes, stored[1].body) == (None, 0, None)


def test_an_empty_body_is_a_body():
    stored, _ = grow(opened(), "r", [Draft(Noted(namespace="x"), b"")], now_us=5, batch=BATCH, epoch=1, holder=True)
    assert decode_head(stored[0].head).body == digest_of(b"")
    assert stored[0].body == b""


def test_digests_chain_from_the_runs_own_beginning():
    row = Folding()
    stored, _ = grow(row, "r", OPEN_AND_CLAIM, now_us=5, batch=BATCH, epoch=0, holder=True)
    assert stored[0].digest == digest_after(genesis("r"), stored[0].head)
    assert stored[1].digest == digest_after(stored[0].digest, stored[1].head)
    assert row.digest == stored[1].digest


def test_a_later_append_continues_the_chain():
    row = opened()
    before = row.digest
    stored, _ = grow(row, "r", [Draft(Noted(namespace="x"))], now_us=5, batch=BATCH, epoch=1, holder=True)
    assert stored[0].digest == digest_after(before, stored[0].head)


def test_time_never_runs_backwards_in_a_log():
    row = opened(now_us=1000)
    stored, _ = grow(row, "r", [Draft(Noted(namespace="x"))], now_us=400, batch=BATCH, epoch=1, holder=True)
    assert decode_head(stored[0].head).at_us == 1000
    stored, _ = grow(row, "r", [Draft(Noted(namespace="x"))], now_us=2000, batch=BATCH, epoch=1, holder=True)
    assert decode_head(stored[0].head).at_us == 2000


def test_what_concerns_the_ledger_is_handed_out_in_order():
    drafts = [
        Draft(Began(key=KEY, tool="charge")),
        Draft(Noted(namespace="x")),
        Draft(Returned(key=KEY, began=3), b"ok"),
    ]
    _, ledger = grow(opened(), "r", drafts, now_us=5, batch=BATCH, epoch=1, holder=True)
    assert ledger == [LedgerEntry(KEY, 3, 0, "began"), LedgerEntry(KEY, 3, 5, "returned")]


def test_a_draft_is_left_as_it_was():
    draft = Draft(Saved(step=1), b"state")
    grow(opened(), "r", [draft], now_us=5, batch=BATCH, epoch=1, holder=True)
    assert draft == Draft(Saved(step=1), b"state")


def test_each_draft_is_checked_against_the_status_that_the_one_before_it_left():
    row = opened()
    with pytest.raises(NotAllowed, match="is ready; 'released'"):
        grow(row, "r", [Draft(Released()), Draft(Released())], now_us=5, batch=BATCH, epoch=1, holder=True)


def test_a_stranger_cannot_grow_a_held_run_by_what_is_its_holders():
    with pytest.raises(NotAllowed, match="held by owner-1"):
        grow(opened(), "r", [Draft(Saved(step=1), b"s")], now_us=5, batch=BATCH, epoch=0, holder=False)
    stored, _ = grow(opened(), "r", [Draft(Noted(namespace="x"))], now_us=5, batch=BATCH, epoch=0, holder=False)
    assert decode_head(stored[0].head).epoch == 0


def test_a_run_begins_with_opened():
    with pytest.raises(NotAllowed, match="is absent"):
        grow(Folding(), "r", [Draft(Saved(step=1), b"s")], now_us=5, batch=BATCH, epoch=0, holder=False)
