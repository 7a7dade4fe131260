"""Which key a call gets: by the step, by what it is, and by which of the equal calls it is."""

import itertools

import pytest

from keepstep.engine.keys import PLACE, Keys, Place, key_of_name
from keepstep.errors import BadInput
from keepstep.log.fold import Fields


def numbers(keys, row, *calls):
    """The numbers that calls get, all of them of one tool; each a text, its arguments."""
    return [keys.numbered(row, "once", "pay", arguments=call.encode()).number for call in calls]


def key_at(**row):
    return Keys().numbered(Fields(**row), "once", "pay").key


def test_equal_calls_are_numbered_whatever_their_arguments():
    assert numbers(Keys(), Fields(), "ada", "ada", "bob") == [1, 2, 3]


def test_numbers_begin_anew_after_a_checkpoint():
    keys = Keys()
    numbers(keys, Fields(), "ada", "bob")

    assert numbers(keys, Fields(saved=5, step=1), "ada", "bob") == [1, 2]


def test_a_call_that_raised_is_made_again_by_the_same_arguments_alone():
    keys = Keys()
    raised = keys.numbered(Fields(), "once", "pay", arguments=b"ada")
    keys.raised(raised)

    assert numbers(keys, Fields(), "bob", "ada", "ada") == [2, 1, 3]


def test_the_first_that_raised_is_made_again_first():
    keys = Keys()
    first, second = (keys.numbered(Fields(), "once", "pay", arguments=b"ada") for _ in range(2))
    keys.raised(second)
    keys.raised(first)

    assert numbers(keys, Fields(), "ada", "ada", "ada") == [1, 2, 3]


def test_what_raised_before_a_checkpoint_is_forgotten():
    keys = Keys()
    raised = keys.numbered(Fields(), "once", "pay", arguments=b"ada")
    numbers(keys, Fields(saved=5, step=1), "ada")
    keys.raised(raised)

    assert numbers(keys, Fields(saved=5, step=1), "ada") == [2]


def test_another_step_line_kind_tool_or_place_is_another_key():
    keys = Keys()
    token = PLACE.set(Place(b"outer", keys=keys))
    inside = keys.numbered(Fields(), "once", "pay").key
    PLACE.set(Place(None, (1, 0), keys=keys))
    branch = keys.numbered(Fields(), "once", "pay").key
    PLACE.reset(token)

    found = [
        inside,
        branch,
        key_at(),
        key_at(step=1),
        Keys().numbered(Fields(), "once", "refund").key,
        Keys().numbered(Fields(), "memo", "pay").key,
        Keys().numbered(Fields(line=2), "memo", "pay").key,
        key_of_name("pay"),
        key_of_name("pay", b"outer"),
    ]

    assert all(one != two for one, two in itertools.combinations(found, 2))


def test_a_call_that_must_not_repeat_has_the_same_key_on_every_line():
    assert key_at(line=2, step=3) == key_at(line=1, step=3)


def test_the_same_calls_get_the_same_keys_in_every_process():
    assert key_at(step=3).hex() == key_at(step=3).hex()
    assert key_of_name("call-1").hex() == "196f52c4369574b5d0ed232223720dc1"


def test_a_place_in_another_claim_is_no_place_in_this_one():
    token = PLACE.set(Place(b"outer", (1, 2), keys=Keys()))
    there = Keys().numbered(Fields(), "once", "pay").key
    PLACE.reset(token)

    assert there == key_at()


def test_a_name_that_cannot_be_written_is_refused():
    with pytest.raises(BadInput, match="surrogate"):
        key_of_name("half a pair: \ud800")
