"""`save` and `load`: one append, no claim."""

import pytest

import keepstep
from keepstep.log.records import Asked, Cancelled


def test_what_is_saved_is_loaded(store):
    step = store.save("job", {"n": 3}, next="tool", step=3, workflow="wf", label="third", version=2)

    found = store.load("job")
    assert step == found.step == 3
    assert (found.run_id, found.workflow, found.state, found.next) == ("job", "wf", {"n": 3}, "tool")
    assert (found.label, found.version, found.line, found.parent_seq) == ("third", 2, 1, None)


def test_nothing_saved_loads_as_none(store):
    store.claim("empty", "w").close()

    assert store.load("unknown") is None
    assert store.load("empty") is None


@pytest.mark.parametrize("state", [None, [], {}, 0, "text", [1, (2,)], {1: "a"}, b"\x00", {"a": {"b": [{}]}}])
def test_any_value_is_a_state(store, state):
    store.save("job", state, workflow="w")

    assert store.load("job").state == state


def test_only_a_workflow_creates(store):
    with pytest.raises(keepstep.NoSuchRun):
        store.save("job", {})

    assert store.load("job") is None


def test_the_workflow_need_not_be_repeated_and_must_not_differ(store):
    store.save("job", 1, workflow="wf")
    store.save("job", 2)

    with pytest.raises(keepstep.WrongWorkflow):
        store.save("job", 3, workflow="other")

    assert store.load("job").state == 2


def test_steps_count_up_from_one(store):
    assert [store.save("job", n, workflow="w") for n in range(3)] == [1, 2, 3]


def test_steps_may_be_given_with_gaps(store):
    assert store.save("job", "a", step=0, workflow="w") == 0
    assert store.save("job", "b", step=7) == 7
    assert store.save("job", "c") == 8


@pytest.mark.parametrize("step", [0, 4, 5])
def test_steps_grow(store, step):
    store.save("job", "a", step=5, workflow="w")

    with pytest.raises(keepstep.NotAllowed, match="step 5"):
        store.save("job", "b", step=step)

    assert store.load("job").state == "a"


@pytest.mark.parametrize("step", [-1, True, 1.0, "1", 1 << 53])
def test_a_step_is_a_whole_number(memory_store, step):
    with pytest.raises(keepstep.BadInput, match="step="):
        memory_store.save("job", {}, step=step, workflow="w")
    with memory_store.run("r", "w") as run, pytest.raises(keepstep.BadInput, match="step="):
        run.save({}, step=step)


@pytest.mark.parametrize("name", ["", 5, b"n", "x" * 257, "\ud800"])
def test_the_names_of_steps_and_labels_are_short_texts(memory_store, name):
    with pytest.raises(keepstep.BadInput, match="next="):
        memory_store.save("job", {}, next=name, workflow="w")
    with pytest.raises(keepstep.BadInput, match="label="):
        memory_store.save("job", {}, label=name, workflow="w")

    assert memory_store.load("job") is None


def test_next_and_label_are_of_one_checkpoint(store):
    store.save("job", 1, next="tool", label="a", workflow="w")
    store.save("job", 2)

    found = store.load("job")
    assert (found.next, found.label) == (None, None)


def test_a_save_is_one_append(store):
    store.save("job", 1, workflow="w")
    first = store.look("job").seq
    store.save("job", 2)

    assert store.look("job").seq == first + 1
    assert store.look("job").epoch == 0


def test_a_state_changed_after_saving_is_not_changed_in_the_store(store):
    state = {"messages": ["a"]}
    store.save("job", state, workflow="w")
    state["messages"].append("b")

    assert store.load("job").state == {"messages": ["a"]}
    store.save("job", state)
    assert store.load("job").state == {"messages": ["a", "b"]}


def test_a_loaded_state_is_the_callers_own(store):
    store.save("job", {"messages": ["a"]}, workflow="w")
    store.load("job").state["messages"].append("b")

    assert store.load("job").state == {"messages": ["a"]}


def test_two_stores_that_save_in_turn_see_each_other(place):
    one, two = place.open(), place.open()
    state = {"messages": []}
    for number in range(20):
        state["messages"].append(f"message {number} " * 10)
        (one, two)[number % 2].save("job", state, workflow="w")

    assert one.load("job").state == two.load("job").state == state
    assert one.load("job").step == 20
    for step in range(1, 21):
        assert len(one.at("job", step=step).state["messages"]) == step
    assert two.verify("job").ok


def test_a_long_life_is_read_back_at_every_step(store):
    state = {"messages": [], "n": 0}
    for number in range(90):
        state["messages"].append("word " * (number % 7))
        state["n"] = number
        store.save("job", state, workflow="w")

    for step in (1, 31, 32, 33, 64, 65, 90):
        found = store.at("job", step=step).state
        assert (len(found["messages"]), found["n"]) == (step, step - 1)


# --- beside claims ---------------------------------------------------------------------------------------------------


def test_a_held_run_is_not_saved_from_outside(place):
    holder, other = place.open(), place.open()
    with holder.run("job", "w") as run:
        run.save("mine")
        for store in (holder, other):
            with pytest.raises(keepstep.RunHeld):
                store.save("job", "not mine")
        run.save("mine again")

    assert other.save("job", "mine now") == 3
    assert holder.load("job").state == "mine now"


def test_a_claim_goes_on_from_a_plain_save_and_back(store):
    store.save("job", {"n": 1}, workflow="w")
    with store.run("job") as run:
        assert run.save({"n": run.state["n"] + 1}) == 2
    assert store.save("job", {"n": 3}) == 3

    assert [store.at("job", step=step).state["n"] for step in (1, 2, 3)] == [1, 2, 3]


def test_a_plain_save_takes_a_dead_owners_run(place):
    dead, store = place.open(), place.open()
    dead.claim("job", "w").save(1)
    place.kill(dead)

    assert store.save("job", 2) == 2
    assert store.look("job").status == "ready"


def test_a_frozen_owner_that_wakes_after_a_plain_save_writes_nothing(place):
    frozen, store = place.open(), place.open()
    run = frozen.claim("job", "w")
    run.save(1)
    place.freeze(frozen)
    store.save("job", 2)

    with pytest.raises(keepstep.ClaimLost):
        run.save(3)

    assert store.load("job").state == 2


def _finish(place, store):
    with store.run("job") as run:
        run.finish()


def _fail(place, store):
    with pytest.raises(ValueError), store.run("job"):
        raise ValueError


def _cancel(place, store):
    place.append(store, "job", Cancelled())


@pytest.mark.parametrize("end", [_finish, _fail, _cancel])
def test_an_ended_run_is_not_saved(place, end):
    store = place.open()
    store.save("job", 1, workflow="w")
    end(place, store)

    with pytest.raises(keepstep.NotAllowed, match="'job'"):
        store.save("job", 2)

    assert store.load("job").state == 1


def test_a_waiting_run_can_be_saved_and_goes_on_waiting(place):
    store = place.open()
    store.save("job", 1, workflow="w")
    place.leave_to_wait(store, store.claim("job"), Asked(gate="g", key=b"k" * 16))

    store.save("job", 2)

    assert store.load("job").state == 2
    assert store.look("job").status == "paused"
