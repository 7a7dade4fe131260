"""A run's checkpoints: light lines in either order, and any of them whole."""

import pytest

import keepstep

LONG = 150


def fill(store, run_id="r", steps=LONG):
    """A long log: notes lie between the checkpoints, steps have gaps, some have labels."""
    with store.run(run_id, "w") as run:
        for number in range(steps):
            run.save({"n": number, "text": "x" * (number % 9)}, step=2 * number, label=f"at {number // 50}")
            if number % 3 == 0:
                run.note(number)
                run.tag(n=number)
    return run


def all_pages(store, run_id, **how):
    cursor, items = None, []
    while True:
        page = store.history(run_id, cursor=cursor, **how)
        items += page.items
        cursor = page.next
        if cursor is None:
            return items
        assert page.items


def test_lines_are_light(store):
    store.save("r", {"text": "x" * 10_000}, next="tool", label="big", workflow="w")

    (line,) = store.history("r").items

    assert (line.step, line.next, line.label, line.line, line.parent_seq) == (1, "tool", "big", 1, None)
    assert line.state_bytes > 10_000 > line.stored_bytes
    assert line.seq == 2
    assert not hasattr(line, "state")


def test_the_newest_come_first_unless_told_otherwise(store):
    for number in range(4):
        store.save("r", number, workflow="w")

    assert [one.step for one in store.history("r").items] == [4, 3, 2, 1]
    assert [one.step for one in store.history("r", newest_first=False).items] == [1, 2, 3, 4]


def test_each_checkpoint_names_the_one_before(store):
    fill(store, steps=10)
    lines = store.history("r", newest_first=False).items

    assert [one.parent_seq for one in lines[1:]] == [one.seq for one in lines[:-1]]


@pytest.mark.parametrize("limit", [1, 7, 50, 1000])
def test_pages_hold_every_checkpoint_once(place, limit):
    store = place.open()
    fill(store, steps=60)

    for newest_first in (True, False):
        items = all_pages(store, "r", newest_first=newest_first, limit=limit)
        steps = [one.step for one in items]
        assert steps == sorted(range(0, 120, 2), reverse=newest_first)


def test_a_page_that_just_fits_is_the_last(store):
    for number in range(4):
        store.save("r", number, workflow="w")

    assert store.history("r", limit=4).next is None
    assert store.history("r", limit=3).next is not None


def test_a_cursor_stands_still_while_the_run_goes_on(store):
    for number in range(6):
        store.save("r", number, workflow="w")
    first = store.history("r", limit=3)
    store.save("r", "new")

    assert [one.step for one in store.history("r", limit=3, cursor=first.next).items] == [3, 2, 1]


def test_a_run_without_checkpoints_has_an_empty_history(store):
    with store.run("r", "w") as run:
        for number in range(100):
            run.note(number)

    page = store.history("r")
    assert (page.items, page.next) == ([], None)


def test_any_step_of_a_long_log_is_found(store):
    fill(store)

    for number in (0, 1, 2, 31, 63, 64, 65, 100, 127, 128, LONG - 1):
        found = store.at("r", step=2 * number)
        assert found.state["n"] == number
        assert store.at("r", seq=found.seq) == found


def test_a_step_in_a_gap_is_told_its_neighbours(store):
    fill(store, steps=40)

    with pytest.raises(keepstep.NoSuchCheckpoint, match="30 and 32"):
        store.at("r", step=31)
    with pytest.raises(keepstep.NoSuchCheckpoint, match="78"):
        store.at("r", step=79)
    with pytest.raises(keepstep.NoSuchCheckpoint):
        store.at("r", step=-1)


def test_a_label_finds_its_newest_checkpoint(store):
    fill(store)

    assert [store.at("r", label=f"at {part}").state["n"] for part in range(3)] == [49, 99, 149]
    with pytest.raises(keepstep.NoSuchCheckpoint, match="'at 3'"):
        store.at("r", label="at 3")


def test_without_a_choice_it_is_the_current_one(store):
    fill(store, steps=5)

    assert store.at("r") == store.load("r")
    assert store.at("r").step == 8


def test_a_record_that_is_no_checkpoint_is_refused(store):
    fill(store, steps=5)

    for seq in (1, 2, 4, 999):
        with pytest.raises(keepstep.NoSuchCheckpoint):
            store.at("r", seq=seq)


def test_a_run_without_checkpoints_has_none_to_give(store):
    store.claim("r", "w").close()

    with pytest.raises(keepstep.NoSuchCheckpoint, match="'r'"):
        store.at("r")


def test_a_checkpoint_is_chosen_in_one_way(memory_store):
    memory_store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.BadInput):
        memory_store.at("r", step=1, seq=2)


@pytest.mark.parametrize(
    "choice",
    [
        {"step": "1"},
        {"step": 1.0},
        {"step": True},
        {"seq": "2"},
        {"seq": True},
        {"seq": 0},
        {"label": 5},
        {"label": ""},
    ],
    ids=str,
)
def test_a_choice_of_the_wrong_type_is_refused(memory_store, choice):
    memory_store.save("r", {}, workflow="w")

    with pytest.raises((keepstep.BadInput, keepstep.NoSuchCheckpoint)):
        memory_store.at("r", **choice)


@pytest.mark.parametrize("limit", [0, -1, 1001, True, "5", None, 2.0])
def test_a_page_has_a_size(memory_store, limit):
    memory_store.save("r", {}, workflow="w")

    for page in (lambda: memory_store.history("r", limit=limit), lambda: memory_store.runs(limit=limit)):
        with pytest.raises(keepstep.BadInput, match="limit="):
            page()


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "9" * 40, 5, b"5", "²"])
def test_what_is_no_cursor_is_refused(store, cursor):
    store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.BadInput, match="cursor="):
        store.history("r", cursor=cursor)


# --- differences -----------------------------------------------------------------------------------------------------


def test_a_diff_says_what_changed_between_two_steps(store):
    store.save("r", {"todo": ["a", "b"], "done": [], "n": 1}, workflow="w")
    store.save("r", {"todo": ["b"], "done": ["a"], "by": "ada"})

    changes = store.diff("r", 1, 2)

    assert {(one.path, one.kind, one.old, one.new) for one in changes} == {
        ("todo[0]", "removed", "a", None),
        ("done[0]", "added", None, "a"),
        ("n", "removed", 1, None),
        ("by", "added", None, "ada"),
    }
    assert store.diff("r", 1) == changes
    assert store.diff("r", 2, 2) == []


def test_a_diff_goes_both_ways(store):
    store.save("r", {"n": 1}, workflow="w")
    store.save("r", {"n": 2})

    (change,) = store.diff("r", 2, 1)

    assert (change.old, change.new) == (2, 1)


def test_a_diff_compares_two_runs(store):
    store.save("one", {"n": 1}, workflow="w")
    store.save("two", {"n": 2}, workflow="w")

    (change,) = store.diff("one", other="two")

    assert (change.path, change.old, change.new) == ("n", 1, 2)
