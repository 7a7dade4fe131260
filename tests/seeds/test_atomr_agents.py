"""atomr-agents: snapshots per workflow, run and super-step; load one or the latest, light lists, forks with edits."""

from __future__ import annotations

import pytest

import keepstep


def snapshot(step: int) -> dict[str, object]:
    """What the graph's channels hold at a super-step."""
    return {"step": step, "messages": [f"message {number}" for number in range(step + 1)], "text": "words " * 100}


@pytest.fixture
def gaps(store):
    """A run with the super-steps 0, 2, 5 and 10."""
    for step in (0, 2, 5, 10):
        store.save("run-1", snapshot(step), next=f"node {step}", step=step, workflow="graph")
    return store


# --- load one, load the latest ---------------------------------------------------------------------------------------


def test_each_super_step_is_loaded_by_its_number(place, gaps):
    for store in (gaps, place.open()):
        for step in (0, 2, 5, 10):
            found = store.at("run-1", step=step)
            assert (found.run_id, found.workflow, found.step, found.next) == ("run-1", "graph", step, f"node {step}")
            assert found.state == snapshot(step)


@pytest.mark.parametrize("step", [1, 3, 9, 11])
def test_a_super_step_that_was_left_out_is_not_made_up(gaps, step):
    with pytest.raises(keepstep.NoSuchCheckpoint, match=f"step {step}"):
        gaps.at("run-1", step=step)


def test_the_latest_of_0_and_2_is_2(place):
    store = place.open()
    store.save("run-1", snapshot(0), step=0, workflow="graph")
    assert store.load("run-1").step == 0
    store.save("run-1", snapshot(2), step=2)

    for one in (store, place.open()):
        assert one.load("run-1").step == one.at("run-1").step == one.look("run-1").step == 2
        assert [line.step for line in one.history("run-1").items] == [2, 0]
        assert one.load("run-1").state == one.look("run-1").state == snapshot(2)
    with store.run("run-1") as run:
        assert (run.step, run.state) == (2, snapshot(2))


def everything_said_of_the_latest(store: keepstep.Store) -> list[object]:
    """The latest checkpoint by every way that leads to it."""
    loaded = store.load("run-1")
    assert loaded is not None
    line = store.history("run-1", limit=1).items[0]
    by_number, by_seq, latest = (
        store.at("run-1", step=loaded.step),
        store.at("run-1", seq=line.seq),
        store.at("run-1"),
    )
    assert loaded == by_number == by_seq == latest
    look = store.look("run-1")
    assert (look.step, look.next, look.state) == (loaded.step, loaded.next, loaded.state)
    return [loaded, store.history("run-1").items]


@pytest.mark.parametrize("again", [10, 5, 3, 0])
def test_a_number_that_does_not_grow_is_refused_and_every_way_to_the_latest_agrees(place, gaps, again):
    other = place.open()
    before = everything_said_of_the_latest(gaps)

    for store in (gaps, other):
        with pytest.raises(keepstep.NotAllowed, match="step 10"):
            store.save("run-1", {"another": "snapshot"}, step=again)
        with store.run("run-1") as run:
            with pytest.raises(keepstep.NotAllowed, match="step 10"):
                run.save({"another": "snapshot"}, step=again)
            assert (run.step, run.state) == (10, snapshot(10))

    for store in (gaps, other, place.open()):
        assert everything_said_of_the_latest(store) == before


def test_a_snapshot_saved_again_under_the_next_number_is_the_latest(gaps):
    assert gaps.save("run-1", snapshot(10)) == 11

    assert gaps.at("run-1", step=10).state == gaps.at("run-1", step=11).state == snapshot(10)
    assert everything_said_of_the_latest(gaps)


def test_the_same_super_step_of_two_runs_is_not_the_same(gaps):
    gaps.save("run-2", {"other": True}, step=5, workflow="graph")

    assert gaps.at("run-1", step=5).state == snapshot(5)
    assert gaps.at("run-2", step=5).state == {"other": True}


def test_a_run_belongs_to_one_workflow(gaps):
    with pytest.raises(keepstep.WrongWorkflow):
        gaps.save("run-1", {}, step=11, workflow="another graph")
    gaps.save("run-2", {}, step=0, workflow="another graph")

    assert [one.run_id for one in gaps.runs("graph").items] == ["run-1"]
    assert [one.run_id for one in gaps.runs("another graph").items] == ["run-2"]


# --- light metadata --------------------------------------------------------------------------------------------------


def test_the_list_of_snapshots_is_light_and_in_order(place):
    store = place.open()
    begun = []
    for step in (0, 2, 5):
        store.save("run-1", {**snapshot(step), "secret": "s" * 5000}, next=f"node {step}", step=step, workflow="graph")
        begun.append(store.history("run-1", limit=1).items[0].at)
        place.clock.turn(60)

    lines = store.history("run-1", newest_first=False).items

    assert [(line.step, line.next, line.at) for line in lines] == list(
        zip((0, 2, 5), ("node 0", "node 2", "node 5"), begun, strict=True)
    )
    assert begun == sorted(set(begun))
    assert store.history("run-1").items == lines[::-1]
    for line in lines:
        assert line.state_bytes > 5000
        assert not hasattr(line, "state")
        assert "ssss" not in repr(line)


def test_the_list_of_runs_is_light(gaps):
    gaps.save("run-2", {"secret": "s" * 5000}, workflow="graph")

    lines = gaps.runs("graph").items

    assert {(line.run_id, line.step) for line in lines} == {("run-1", 10), ("run-2", 1)}
    assert not any(hasattr(line, "state") or "ssss" in repr(line) for line in lines)


# --- fork ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 2, 10, None])
def test_a_fork_is_a_new_run_with_edits_and_lineage(place, gaps, at):
    step = 10 if at is None else at
    before = everything_said_of_the_latest(gaps)

    look = gaps.fork("run-1", at, {"messages": ["edited"], "text": keepstep.REMOVE, "by": "ada"}, id="run-1-b")

    for store in (gaps, place.open()):
        assert store.look("run-1-b") == look
        assert look.state == {"step": step, "messages": ["edited"], "by": "ada"}
        assert (look.step, look.workflow, look.status) == (step, "graph", "ready")
        assert look.parent == keepstep.ParentLook("run-1", step=step, seq=store.at("run-1", step=step).seq)
        assert [one.run_id for one in store.children("run-1").items] == ["run-1-b"]
        assert everything_said_of_the_latest(store) == before
        assert [line.step for line in store.history("run-1-b").items] == [step]


def test_a_family_of_forks_can_be_walked_both_ways(gaps):
    gaps.fork("run-1", 2, id="child")
    gaps.fork("run-1", 5, id="sibling")
    gaps.save("child", snapshot(4), step=4)
    gaps.fork("child", 4, {"by": "ada"}, id="grandchild")

    assert {one.run_id for one in gaps.children("run-1").items} == {"child", "sibling"}
    assert [one.run_id for one in gaps.children("child").items] == ["grandchild"]
    ancestors, look = [], gaps.look("grandchild")
    while look.parent is not None:
        ancestors.append((look.parent.run_id, look.parent.step))
        look = gaps.look(look.parent.run_id)
    assert ancestors == [("child", 4), ("run-1", 2)]


def test_a_fork_and_its_parent_go_on_apart(place, gaps):
    gaps.fork("run-1", 2, id="run-1-b")
    gaps.save("run-1-b", {"branch": True}, step=3)
    gaps.save("run-1", {"trunk": True}, step=11)

    other = place.open()
    assert (other.load("run-1-b").state, other.load("run-1-b").step) == ({"branch": True}, 3)
    assert (other.load("run-1").state, other.load("run-1").step) == ({"trunk": True}, 11)
    with pytest.raises(keepstep.NoSuchCheckpoint):
        other.at("run-1", step=3)
    gaps.delete("run-1")
    assert other.at("run-1-b", step=2).state == snapshot(2)


def test_a_fork_of_what_is_not_there_creates_nothing(gaps):
    for run_id, at in (("run-1", 3), ("run-2", None)):
        with pytest.raises(keepstep.RunError):
            gaps.fork(run_id, at, id="run-1-b")

    assert [one.run_id for one in gaps.runs().items] == ["run-1"]
    assert gaps.children("run-1").items == []
