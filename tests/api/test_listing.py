"""Lists of runs: filtered, in order, page by page; and what a worker would take."""

from contextlib import suppress

import pytest

import keepstep
from keepstep.log.records import Asked, Cancelled, Slept

KEY = b"k" * 16


def ids(page):
    return [one.run_id for one in page.items]


def all_ids(list_page, **how):
    cursor, found = None, []
    while True:
        page = list_page(cursor=cursor, **how)
        found += ids(page)
        cursor = page.next
        if cursor is None:
            return found
        assert page.items


@pytest.fixture
def six(place):
    """Runs a to f, a second apart; every other one of workflow "odd"."""
    store = place.open()
    for number, name in enumerate("abcdef"):
        store.save(name, {"n": number}, workflow=("even", "odd")[number % 2])
        store.tag(name, number=number, half=number < 3)
        place.clock.turn(1)
    return store


def test_the_newest_come_first(six):
    assert ids(six.runs()) == list("fedcba")
    assert ids(six.runs(newest_first=False)) == list("abcdef")


def test_lines_are_light(six):
    line = six.runs(limit=1).items[0]

    assert (line.run_id, line.workflow, line.status, line.step) == ("f", "odd", "ready", 1)
    assert line.tags == {"number": 5, "half": False}
    assert not hasattr(line, "state")


def test_a_line_says_the_same_as_a_look(six):
    line, look = six.runs(starts_with="c").items[0], six.look("c")

    for name in keepstep.RunHead.__annotations__:
        assert getattr(look, name) == getattr(line, name)


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7])
@pytest.mark.parametrize("order", ["created", "changed"])
def test_pages_hold_every_run_once(six, limit, order):
    for newest_first in (True, False):
        found = all_ids(six.runs, limit=limit, order=order, newest_first=newest_first)
        assert found == sorted("abcdef", reverse=newest_first)


def test_runs_of_one_moment_are_paged_as_well(store):
    for number in range(10):
        store.save(f"r{number}", {}, workflow="w")

    assert sorted(all_ids(store.runs, limit=3)) == [f"r{number}" for number in range(10)]


def test_a_page_is_not_disturbed_by_new_runs(place, six):
    first = six.runs(limit=2)
    six.save("g", {}, workflow="even")
    six.delete("e")

    assert ids(first) == ["f", "e"]
    assert ids(six.runs(limit=2, cursor=first.next)) == ["d", "c"]


def test_the_order_of_changes_is_that_of_the_status(place, six):
    with six.run("b"):
        place.clock.turn(1)
    six.save("a", {"n": 99})
    six.note("c", "hi")

    assert ids(six.runs(order="changed")) == list("bfedca")
    assert ids(six.runs(order="created")) == list("fedcba")


def test_runs_are_found_by_workflow(six):
    assert ids(six.runs("even")) == ["e", "c", "a"]
    assert ids(six.runs(workflow="odd", newest_first=False)) == ["b", "d", "f"]
    assert ids(six.runs("none")) == []


def test_runs_are_found_by_status(place, six):
    six.claim("a")
    with suppress(ValueError), six.run("b"):
        raise ValueError
    with six.run("c") as run:
        run.finish()
    place.append(six, "d", Cancelled())
    place.leave_to_wait(six, six.claim("e"), Asked(gate="g", key=KEY))
    place.leave_to_wait(six, six.claim("f"), Slept(key=KEY, until_us=place.clock.now_us() + 60_000_000))

    found = {status: ids(six.runs(status=status)) for status in
             ("ready", "running", "failed", "finished", "cancelled", "paused", "sleeping")}  # fmt: skip
    assert found == {
        "ready": [], "running": ["a"], "failed": ["b"], "finished": ["c"], "cancelled": ["d"], "paused": ["e"],
        "sleeping": ["f"],
    }  # fmt: skip
    assert ids(six.runs(status=["failed", "finished"])) == ["c", "b"]
    assert ids(six.runs(status=("running",))) == ["a"]
    assert ids(six.runs(status=[])) == list("fedcba")
    assert ids(six.runs("odd", status=["failed", "running"])) == ["b"]


def test_runs_are_found_by_tags(six):
    assert ids(six.runs(tags={"number": 3})) == ["d"]
    assert ids(six.runs(tags={"half": True})) == ["c", "b", "a"]
    assert ids(six.runs(tags={"half": True, "number": 1})) == ["b"]
    assert ids(six.runs(tags={"half": True, "number": 5})) == []
    assert ids(six.runs("even", tags={"half": True}, status="ready", limit=1)) == ["c"]


def test_tags_of_unlike_types_are_not_the_same(store):
    for name, value in (("int", 1), ("float", 1.5), ("text", "1"), ("true", True), ("false", False), ("zero", 0)):
        store.save(name, {}, workflow="w")
        store.tag(name, mark=value)

    found = [ids(store.runs(tags={"mark": value})) for value in (1, 1.5, "1", True, False, 0, "true")]
    assert found == [["int"], ["float"], ["text"], ["true"], ["false"], ["zero"], []]


def test_a_changed_tag_is_found_by_its_new_value_only(six):
    six.tag("a", number=100)
    six.tag("b", number=None)

    assert ids(six.runs(tags={"number": 0})) == []
    assert ids(six.runs(tags={"number": 100})) == ["a"]
    assert ids(six.runs(tags={"number": 1})) == []


def test_a_tag_of_no_value_is_not_searched_for(six):
    with pytest.raises(keepstep.BadInput):
        six.runs(tags={"number": None})


IDS = ["report-1", "report-10", "Report-1", "report_1", "report%", "réport", "rapport", "\U0010ffff\U0010ffff", "r"]


@pytest.mark.parametrize(
    "start", ["", "report", "report-1", "report_", "report%", "r", "R", "ré", "\U0010ffff", "x", "report-1x"]
)
def test_runs_are_found_by_how_their_ids_begin(store, start):
    for run_id in IDS:
        store.save(run_id, {}, workflow="w")

    found = all_ids(store.runs, starts_with=start, limit=2)

    assert sorted(found) == sorted(run_id for run_id in IDS if run_id.startswith(start))


def test_a_held_run_shows_its_holder(place, six):
    other = place.open()
    other.claim("b")

    holder = six.runs(status="running").items[0].holder

    assert holder == six.look("b").holder
    assert holder.stands


@pytest.mark.parametrize(
    "query",
    [
        {"status": "done"}, {"status": ["ready", "done"]}, {"status": 5}, {"status": [5]}, {"order": "id"},
        {"order": None},
        {"workflow": ""}, {"workflow": 5}, {"starts_with": 5}, {"starts_with": None}, {"cursor": 5}, {"cursor": "x"},
        {"cursor": ""}, {"starts_with": "\ud800"}, {"tags": 5}, {"newest_first": "yes"},
    ],
    ids=ascii,
)  # fmt: skip
def test_a_query_that_makes_no_sense_is_refused(store, query):
    store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.BadInput):
        store.runs(**query)


def test_a_cursor_belongs_to_its_list(six):
    cursor = six.runs(limit=2).next

    with pytest.raises(keepstep.BadInput):
        six.runs(limit=2, order="changed", cursor=cursor)
    with pytest.raises(keepstep.BadInput):
        six.runs(limit=2, newest_first=False, cursor=cursor)


# --- what is due -----------------------------------------------------------------------------------------------------


def test_due_is_what_a_worker_would_take(place, six):
    live, dead = place.open(), place.open()
    dead.claim("a")
    place.kill(dead)
    live.claim("b")
    place.leave_to_wait(six, six.claim("c"), Slept(key=KEY, until_us=place.clock.now_us() + 60_000_000))
    place.leave_to_wait(six, six.claim("d"), Asked(gate="g", key=KEY))
    with six.run("e") as run:
        run.finish()
    assert set(ids(six.due())) == {"a", "f"}

    place.clock.turn(60)
    place.beat(live)

    assert set(ids(six.due())) == {"a", "c", "f"}
    assert set(ids(six.due("odd"))) == {"f"}
    assert set(all_ids(six.due, limit=1)) == {"a", "c", "f"}


def test_what_waits_longest_is_due_first(place, six):
    with six.run("a"):
        place.clock.turn(1)

    assert ids(six.due()) == list("bcdefa")


def test_due_takes_nothing(six):
    before = six.runs()

    six.due()

    assert six.runs() == before
