"""A new run that starts from a checkpoint of another."""

from dataclasses import dataclass

import pytest

import keepstep
from keepstep import REMOVE
from keepstep.log.records import Asked


@pytest.fixture
def parent(store):
    """A run of five steps."""
    with store.run("r", "report") as run:
        run.tag(customer="ada")
        for number in range(1, 6):
            run.save({"n": number, "todo": ["a"] * number}, next=f"step {number}", label=f"at {number}")
    return store


def test_a_fork_starts_from_the_checkpoint(parent):
    look = parent.fork("r", at=3, id="r-b")

    assert (look.run_id, look.workflow, look.status, look.holder) == ("r-b", "report", "ready", None)
    assert (look.state, look.step, look.next) == ({"n": 3, "todo": ["a"] * 3}, 3, "step 3")
    assert look.tags == {"customer": "ada"}


def test_without_a_step_it_starts_from_the_current_one(parent):
    assert parent.fork("r", id="r-b").state["n"] == 5


def test_a_fork_without_an_id_gets_one_like_its_parents(parent):
    looks = [parent.fork("r", at=2) for _ in range(2)]

    assert looks[0].run_id != looks[1].run_id
    assert all(look.run_id.startswith("r~") for look in looks)


def test_edits_set_and_remove_keys(parent):
    look = parent.fork("r", at=3, edits={"n": 99, "todo": REMOVE, "by": "ada"}, id="r-b")

    assert look.state == {"n": 99, "by": "ada"}
    assert parent.at("r", step=3).state == {"n": 3, "todo": ["a"] * 3}


def test_removing_what_is_not_there_is_fine(parent):
    assert "nothing" not in parent.fork("r", edits={"nothing": REMOVE}, id="r-b").state


def test_edits_may_be_a_function(parent):
    def change(state):
        return {**state, "n": state["n"] * 10}

    assert parent.fork("r", at=2, edits=change, id="r-b").state["n"] == 20


def test_a_function_may_change_the_state_in_place(parent):
    look = parent.fork("r", at=2, edits=lambda state: state["todo"].clear(), id="r-b")

    assert look.state == {"n": 2, "todo": []}
    assert parent.at("r", step=2).state["todo"] == ["a", "a"]


@dataclass
class Report:
    n: int = 0
    todo: tuple = ()


def test_edits_of_a_typed_state_set_its_fields(store):
    with store.run("r", "w", state=Report) as run:
        run.save(Report(1, ("a",)))

    look = store.fork("r", edits={"n": 2}, id="r-b", state=Report)

    assert look.state == Report(2, ("a",))
    assert store.load("r", state=Report).state == Report(1, ("a",))


@pytest.mark.parametrize("edits", [{"unknown": 1}, {"n": REMOVE}])
def test_edits_that_do_not_fit_the_type_are_refused(store, edits):
    with store.run("r", "w", state=Report) as run:
        run.save(Report())

    with pytest.raises(keepstep.BadInput):
        store.fork("r", edits=edits, id="r-b", state=Report)

    assert store.load("r-b") is None


@pytest.mark.parametrize("edits", [5, "n=1", [("n", 1)], {1, 2}])
def test_edits_are_a_dict_or_a_function(memory_store, edits):
    memory_store.save("r", {"n": 1}, workflow="w")

    with pytest.raises(keepstep.BadInput, match="edits="):
        memory_store.fork("r", edits=edits, id="r-b")


def test_an_edit_that_cannot_be_stored_forks_nothing(parent):
    with pytest.raises(keepstep.CannotStore, match="client"):
        parent.fork("r", edits={"client": object()}, id="r-b")

    assert parent.load("r-b") is None


# --- lineage ---------------------------------------------------------------------------------------------------------


def test_a_fork_knows_its_parent_and_the_parent_its_children(parent):
    seq = parent.at("r", step=3).seq
    for name in ("r-b", "r-c"):
        parent.fork("r", at=3, id=name)
    parent.save("other", {}, workflow="report")

    assert parent.look("r-b").parent == keepstep.ParentLook("r", step=3, seq=seq)
    assert {one.run_id for one in parent.children("r").items} == {"r-b", "r-c"}
    assert parent.children("r-b").items == []
    assert parent.look("r").parent is None


def test_children_come_in_pages(parent):
    for number in range(5):
        parent.fork("r", id=f"r-{number}")

    cursor, found = None, []
    while True:
        page = parent.children("r", limit=2, cursor=cursor)
        found += [one.run_id for one in page.items]
        if (cursor := page.next) is None:
            break

    assert sorted(found) == [f"r-{number}" for number in range(5)]


def test_a_fork_of_a_fork_names_the_nearer_parent(parent):
    parent.fork("r", at=3, id="r-b")
    with parent.run("r-b") as run:
        run.save({"n": 44})

    look = parent.fork("r-b", at=4, id="r-c")

    assert (look.state, look.parent.run_id, look.parent.step) == ({"n": 44}, "r-b", 4)
    assert parent.fork("r-b", at=3, id="r-d").state["n"] == 3


def test_both_go_their_own_way(parent):
    parent.fork("r", at=3, id="r-b")
    with parent.run("r-b") as branch, parent.run("r") as trunk:
        assert branch.save({"n": -4}) == 4
        assert trunk.save({"n": 6}) == 6

    assert [one.step for one in parent.history("r-b").items] == [4, 3]
    assert [one.step for one in parent.history("r").items] == [6, 5, 4, 3, 2, 1]
    assert parent.diff("r", 3, 3, other="r-b") == []
    assert parent.verify("r").ok
    assert parent.verify("r-b").ok


def test_a_fork_outlives_its_parent(parent):
    parent.fork("r", at=3, id="r-b")
    parent.delete("r")

    assert parent.load("r-b").state["n"] == 3
    assert parent.look("r-b").parent.run_id == "r"


# --- from every kind of run ------------------------------------------------------------------------------------------


def test_a_held_run_can_be_forked(place):
    holder, other = place.open(), place.open()
    with holder.run("r", "w") as run:
        run.save({"n": 1})
        look = other.fork("r", id="r-b")
        run.save({"n": 2})

    assert look.state == {"n": 1}
    assert look.holder is None


def test_ended_and_waiting_runs_can_be_forked(place):
    store = place.open()
    with store.run("done", "w") as run:
        run.save({"n": 1})
        run.finish("result")
    waiting = store.claim("waiting", "w")
    waiting.save({"n": 2})
    place.leave_to_wait(store, waiting, Asked(gate="g", key=b"k" * 16))

    for name in ("done", "waiting"):
        look = store.fork(name, id=f"{name}-b")
        assert (look.status, look.result, look.gates) == ("ready", None, ())


def test_what_is_not_there_cannot_be_forked(parent):
    parent.claim("empty", "w").close()

    with pytest.raises(keepstep.NoSuchRun):
        parent.fork("unknown")
    with pytest.raises(keepstep.NoSuchCheckpoint):
        parent.fork("r", at=9)
    with pytest.raises(keepstep.NoSuchCheckpoint):
        parent.fork("empty")


# --- again -----------------------------------------------------------------------------------------------------------


def test_a_fork_can_be_repeated_by_its_id(parent):
    first = parent.fork("r", at=3, edits={"n": 7}, id="r-b")

    assert parent.fork("r", at=3, edits={"n": 7}, id="r-b") == first
    assert parent.look("r-b").seq == first.seq


def test_a_repeated_fork_does_not_disturb_the_branch(parent):
    parent.fork("r", at=3, edits={"n": 7}, id="r-b")
    with parent.run("r-b") as run:
        run.save({"n": 8})

    assert parent.fork("r", at=3, edits={"n": 7}, id="r-b").state == {"n": 8}


@pytest.mark.parametrize(
    "again",
    [{"at": 2}, {"at": 3, "edits": {"n": 8}}, {"at": 3}, {"at": 3, "edits": {"n": 7}, "effects": "fresh"}],
)
def test_another_fork_of_the_same_id_is_refused(parent, again):
    parent.fork("r", at=3, edits={"n": 7}, id="r-b")

    with pytest.raises(keepstep.RunExists, match="'r-b'"):
        parent.fork("r", id="r-b", **again)

    assert parent.load("r-b").state["n"] == 7


def test_edits_that_python_takes_for_equal_are_other_edits(parent):
    for number, (first, again) in enumerate([(1, True), (0.0, False), ({"": []}, []), ({1: "a"}, {True: "a"})]):
        parent.fork("r", edits=lambda state, first=first: first, id=f"r-{number}")

        with pytest.raises(keepstep.RunExists):
            parent.fork("r", edits=lambda state, again=again: again, id=f"r-{number}")


def test_equal_edits_in_another_order_are_the_same(parent):
    first = parent.fork("r", edits={"a": 1, "b": float("nan")}, id="r-b")

    again = parent.fork("r", edits={"b": float("nan"), "a": 1}, id="r-b")

    assert again.seq == first.seq


def test_an_id_that_is_taken_is_refused(parent):
    parent.save("taken", {}, workflow="w")

    with pytest.raises(keepstep.RunExists):
        parent.fork("r", id="taken")
    with pytest.raises(keepstep.RunExists):
        parent.fork("r", id="r")


def test_a_fork_may_take_the_id_of_a_deleted_run(parent):
    parent.save("r-b", {}, workflow="w")
    parent.delete("r-b")

    look = parent.fork("r", at=1, id="r-b")

    assert (look.incarnation, look.state["n"]) == (2, 1)
    assert parent.fork("r", at=1, id="r-b") == look
