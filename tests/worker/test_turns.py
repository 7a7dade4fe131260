"""Workflows take turns."""

from hypothesis import given
from hypothesis import strategies as st

from keepstep.worker.turns import Turns


def rounds(turns, wants, free, count):
    """How much each name gets when so many rounds are made, each with so much room."""
    got = dict.fromkeys(wants, 0)
    for _ in range(count):
        for name, share in turns.shares(free):
            taken = min(share, wants[name])
            turns.took(name, taken)
            got[name] += taken
            wants = {**wants, name: wants[name] - taken}
    return got


NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


@given(NAMES, st.integers(1, 20), st.data())
def test_no_more_is_given_than_there_is_room_for(names, free, data):
    turns, total = Turns(names), 0
    for name, share in turns.shares(free):
        taken = data.draw(st.integers(0, share))
        turns.took(name, taken)
        total += taken
    assert total <= free


@given(NAMES, st.integers(1, 5))
def test_who_always_wants_everything_keeps_nobody_waiting(names, free):
    wants = dict.fromkeys(names, 1000)

    got = rounds(Turns(names), wants, free, len(names) * 4)

    assert max(got.values()) - min(got.values()) <= max(free, 1)


@given(NAMES, st.integers(1, 5))
def test_one_who_wants_little_gets_it_within_one_round_of_turns(names, free):
    wants = dict.fromkeys(names, 1000) | {names[-1]: 1}

    assert rounds(Turns(names), wants, free, len(names))[names[-1]] >= 1


def test_room_that_one_does_not_take_is_the_others():
    turns = Turns(["a", "b"])

    assert [share for name, share in turns.shares(8) if turns.took(name, 0) is None] == [4, 8]


def test_who_is_not_to_be_asked_is_left_out():
    assert [name for name, _ in Turns(["a", "b", "c"]).shares(8, ["b"])] == ["a", "c"]
