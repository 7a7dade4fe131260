"""The ledger index: how each record changes the line of its key."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from keepstep.log.ledger import LedgerEntry, key_of_label, key_of_thing, ledger_change, ledger_changes
from keepstep.log.records import KINDS, Answered, Returned, Saved
from tests.log.record_examples import EXAMPLES, KEY, OTHER_KEY

BEGIN = ("began", "asked", "slept")
STAND = ("inherited", "took")
END = (
    "returned",
    "raised",
    "doubted",
    "settled",
    "undo_began",
    "undone",
    "undo_failed",
    "answered",
    "expired",
)
BEGUN_AT, SEQ = 6, 7


@pytest.mark.parametrize("kind", BEGIN)
def test_a_beginning_opens_the_line_of_its_key(kind: str):
    assert ledger_change(EXAMPLES[kind]) == LedgerEntry(KEY, SEQ, 0, kind)


@pytest.mark.parametrize("kind", STAND)
def test_what_is_over_when_it_is_written_begins_and_ends_at_once(kind: str):
    assert ledger_change(EXAMPLES[kind]) == LedgerEntry(KEY, SEQ, SEQ, kind)


def test_a_message_with_an_id_is_found_by_it():
    assert ledger_change(EXAMPLES["sent"]) == LedgerEntry(OTHER_KEY, SEQ, SEQ, "sent")


def test_a_message_without_an_id_is_not_in_the_index():
    assert ledger_change(replace(EXAMPLES["sent"], message_id=None)) is None


@pytest.mark.parametrize("outcome", ["returned", "open", "doubted"])
def test_what_a_fork_inherits_stands_in_its_index_whatever_came_of_it(outcome: str):
    assert ledger_change(replace(EXAMPLES["inherited"], outcome=outcome)) == LedgerEntry(KEY, SEQ, SEQ, "inherited")


def test_a_call_that_begins_after_a_doubt_opens_the_line_again():
    began = replace(EXAMPLES["began"], seq=SEQ + 1)
    assert ledger_change(EXAMPLES["doubted"]) == LedgerEntry(KEY, BEGUN_AT, SEQ, "doubted")
    assert ledger_change(began) == LedgerEntry(KEY, SEQ + 1, 0, "began")


def test_an_answer_to_a_gate_without_a_key_is_not_in_the_index():
    assert ledger_change(Answered(gate="g-1", seq=SEQ)) is None


@pytest.mark.parametrize("kind", END)
def test_an_outcome_says_where_it_began_and_how_it_ended(kind: str):
    assert ledger_change(EXAMPLES[kind]) == LedgerEntry(KEY, BEGUN_AT, SEQ, kind)


def test_a_memo_has_no_beginning_of_its_own():
    memo = Returned(key=KEY, tool="ask_model", seq=SEQ)
    assert ledger_change(memo) == LedgerEntry(KEY, SEQ, SEQ, "returned")


def test_a_labelled_checkpoint_is_found_by_its_label():
    saved = Saved(step=1, label="before refund", seq=SEQ)
    assert ledger_change(saved) == LedgerEntry(key_of_label("before refund"), SEQ, SEQ, "saved")


def test_a_checkpoint_without_a_label_is_not_in_the_index():
    assert ledger_change(replace(EXAMPLES["saved"], label=None)) is None


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {*BEGIN, *STAND, *END, "saved", "sent"}))
def test_no_other_kind_changes_the_index(kind: str):
    assert ledger_change(EXAMPLES[kind]) is None


def test_the_key_of_a_label_is_pinned():
    assert key_of_label("before refund").hex() == "45c3a10ea66e6944c193988e18a2f2fb"


def test_labels_that_only_look_alike_have_their_own_keys():
    labels = ["a", "A", "ä", "a\u0308", "a ", "", "a\0"]
    assert len({key_of_label(one) for one in labels}) == len(labels)


@pytest.mark.parametrize("kind", ["began", "inherited"])
def test_what_a_tool_calls_a_thing_finds_the_newest_effect_about_it(kind: str):
    record = EXAMPLES[kind]
    thing = LedgerEntry(key_of_thing("charge", b"T" * 16), SEQ, SEQ, "tool_key")

    assert ledger_changes(record) == [ledger_change(record), thing]
    assert ledger_changes(replace(record, tool_key=None)) == [ledger_change(record)]


def test_things_of_two_tools_are_two():
    assert key_of_thing("charge", b"T" * 16) != key_of_thing("refund", b"T" * 16)


def test_a_record_that_the_index_does_not_have_changes_nothing():
    assert ledger_changes(EXAMPLES["tagged"]) == []
