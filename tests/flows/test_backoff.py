"""How long a step waits before it is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstep
from keepstep.flows.backoff import chance_of

SECONDS = st.floats(0, 1e6)
BACKOFFS = st.builds(
    keepstep.Backoff, first=SECONDS, factor=st.floats(1, 100), most=SECONDS, jitter=st.floats(0, 1, allow_nan=False)
)
ATTEMPTS = st.integers(1, 100_000)
CHANCES = st.floats(0, 1, exclude_max=True)


@given(BACKOFFS, ATTEMPTS, CHANCES)
def test_a_wait_is_never_longer_than_the_most_nor_negative(backoff, attempt, chance):
    assert 0 <= backoff.seconds(attempt, chance) <= backoff.most


@given(BACKOFFS, ATTEMPTS, CHANCES)
def test_chance_takes_away_at_most_the_jitter(backoff, attempt, chance):
    whole = backoff.seconds(attempt, 0)
    least = whole * (1 - backoff.jitter)

    assert least * 0.999999 <= backoff.seconds(attempt, chance) <= whole


@given(BACKOFFS, ATTEMPTS, CHANCES)
def test_waits_grow(backoff, attempt, chance):
    assert backoff.seconds(attempt, chance) <= backoff.seconds(attempt + 1, chance)


def test_waits_double_from_a_second_up_to_five_minutes_unless_said_otherwise():
    assert [keepstep.Backoff().seconds(attempt, 0) for attempt in (1, 2, 3, 9, 10, 5000)] == [1, 2, 4, 256, 300, 300]
    assert keepstep.Backoff(jitter=0).seconds(2, 0.9) == 2
    assert keepstep.Backoff(first=0).seconds(5000, 0) == 0


@given(st.text(), st.integers(0, 100))
def test_chance_is_the_same_in_every_process_and_lies_within_its_bounds(run_id, attempt):
    chance = chance_of(run_id, attempt)

    assert 0 <= chance < 1
    assert chance == chance_of(run_id, attempt)


def test_runs_that_failed_together_do_not_come_back_together():
    assert len({chance_of(f"run {number}", 1) for number in range(1000)}) == 1000


@pytest.mark.parametrize(
    "wrong",
    [{"first": -1}, {"first": float("nan")}, {"factor": 0.5}, {"most": float("inf")}, {"jitter": 2}, {"jitter": "x"}],
)
def test_what_is_no_backoff_is_refused(wrong):
    with pytest.raises(keepstep.BadInput, match=f"{next(iter(wrong))}= of a backoff"):
        keepstep.Backoff(**wrong)
