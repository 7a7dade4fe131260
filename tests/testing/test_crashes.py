"""Crash everywhere: every operation in turn, before it and after it, and the work must come to the same end."""

from __future__ import annotations

import itertools

import pytest

import keepstep
from keepstep.runtime.clock import SystemClock
from keepstep.store.sqlite import SqliteStore
from keepstep.testing import FaultyStore, crash_everywhere

FORMS = ["{}/{}.db", "dir:{}/{}"]

PAGES = ("home", "prices", "contact")


def collect(store):
    """An agent that goes on from where it was."""

    def work(run):
        state = run.state or {"texts": {}}
        for page in PAGES:
            if page not in state["texts"]:
                state["texts"][page] = page.upper()
                run.save(state)
        return sorted(state["texts"])

    return store.carry(work, "c", "collect")


@pytest.fixture(params=FORMS)
def place(request, folder):
    """Gives a new place each time, and remembers which it gave."""
    numbers = itertools.count()
    given = []

    def new():
        given.append(request.param.format(folder, next(numbers)))
        return given[-1]

    new.given = given
    return new


def operations_of(work, folder):
    """How many operations the work takes when nothing happens."""
    faulty = FaultyStore(SqliteStore(str(folder / "count.db"), SystemClock()))
    with keepstep.open(faulty) as store:
        work(store)
    return faulty.operations


def test_every_operation_is_crashed_before_and_after(place, folder):
    checked = []

    crashes = crash_everywhere(place, collect, lambda store: checked.append(store.url))

    assert crashes == 2 * operations_of(collect, folder) > 10
    assert len(checked) == len(set(checked)) == crashes
    assert len(set(place.given)) == len(place.given) == crashes + 1  # the last one was not reached by any crash


def test_work_that_can_continue_comes_to_the_same_end_everywhere(place):
    def check(store):
        look = store.look("c")
        assert (look.status, look.result) == ("finished", sorted(PAGES))
        assert store.verify("c").ok
        assert [line.step for line in store.history("c").items] == [3, 2, 1]

    assert crash_everywhere(place, collect, check)


def test_work_starts_again_where_it_was_saved_and_not_at_its_beginning(place):
    calls = []

    def work(store):
        def remember(run):
            for page in PAGES[run.step or 0 :]:
                calls[-1].append(page)
                run.save(page)

        calls.append([])
        store.carry(remember, "c", "collect")

    crash_everywhere(place, work, lambda store: None)

    again = calls[1:-1:2]  # what ran after each crash
    assert again[0] == list(PAGES)
    assert [] in again
    assert all(done == list(PAGES[len(PAGES) - len(done) :]) for done in again)


def test_an_agent_that_cannot_continue_is_found_out(place):
    def forgets(store):
        with store.run("c", "collect") as run:
            run.save({"n": (run.state or {"n": 0})["n"] + 1})  # once more after a crash: it does not look first

    def check(store):
        assert store.look("c").state == {"n": 1}

    with pytest.raises(AssertionError):
        crash_everywhere(place, forgets, check)


def test_an_error_of_the_work_is_raised(place):
    def fails(store):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        crash_everywhere(place, fails, lambda store: None)


def test_work_that_asks_nothing_of_the_store_cannot_crash(place):
    assert crash_everywhere(place, lambda store: None, lambda store: pytest.fail("nothing crashed")) == 0
