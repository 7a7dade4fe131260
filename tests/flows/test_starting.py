"""Runs that are started for somebody else to carry, and the handles by which they are waited for."""

import threading

import pytest

import keepstep
from tests.kinds import kinds_of


@pytest.fixture
def flow():
    flow = keepstep.Flow("double", start="ask")

    @flow.step
    def ask(run, state):
        if state.get("ask"):
            run.confirm("Double it?")
        return "double"

    @flow.step
    def double(run, state):
        if state["n"] < 0:
            raise ValueError("negative")
        return run.finish(state["n"] * 2)

    return flow


def test_a_started_run_is_ready_and_stands_at_its_first_step(store, flow):
    handle = store.start(flow, {"n": 2}, id="r", tags={"customer": "ada"})

    look = handle.look()
    assert handle.id == look.run_id == "r"
    assert handle.status() == look.status == "ready"
    assert (look.workflow, look.step, look.next, look.state) == ("double", 0, "ask", {"n": 2})
    assert look.tags == {"customer": "ada"}
    assert kinds_of(store) == ["opened", "saved", "tagged"]
    assert [one.run_id for one in store.due("double").items] == ["r"]


def test_it_is_carried_by_whoever_comes_and_its_result_is_the_handles(place, flow):
    handle = place.open().start(flow, {"n": 21}, id="r")
    flow.run(place.open(), id="r")

    assert handle.result() == 42
    assert handle.result(timeout=0) == 42


def test_a_run_is_started_once_however_often_it_is_asked_for(store, flow):
    store.start(flow, {"n": 2, "ask": False}, id="r")
    again = store.start(flow, {"ask": False, "n": 2}, id="r")
    flow.run(store, id="r")

    assert again.result() == 4
    assert store.start(flow, {"n": 2, "ask": False}, id="r").result() == 4
    assert store.start(flow, id="r").id == "r"
    assert kinds_of(store).count("opened") == 1


def test_other_input_under_the_same_id_is_an_error(store, flow):
    store.start(flow, {"n": 2}, id="r")

    with pytest.raises(keepstep.RunExists, match="other input"):
        store.start(flow, {"n": 3}, id="r")
    with pytest.raises(keepstep.RunExists):
        flow.run(store, {"n": 3}, id="r")
    assert store.look("r").state == {"n": 2}


def test_input_does_not_fit_a_run_that_was_started_without(store, flow):
    store.start(flow, id="r")

    with pytest.raises(keepstep.RunExists):
        store.start(flow, {"n": 3}, id="r")


def test_the_id_of_another_workflows_run_is_refused(store, flow):
    store.save("r", {"n": 2}, workflow="other")

    with pytest.raises(keepstep.WrongWorkflow):
        store.start(flow, {"n": 2}, id="r")


def test_without_an_id_it_gets_a_random_one(store, flow):
    handles = [store.start(flow, {"n": 2}) for _ in range(3)]

    assert len({one.id for one in handles}) == 3
    assert all(one.id.startswith("double-") for one in handles)


def test_a_failed_runs_handle_raises_with_its_error(store, flow):
    handle = store.start(flow, {"n": -1}, id="r")
    flow.run(store, id="r")

    with pytest.raises(keepstep.RunFailed, match="ValueError: negative") as raised:
        handle.result()
    assert raised.value.type == "builtins.ValueError"
    assert raised.value.error["message"] == "negative"
    assert "Traceback" in raised.value.error["traceback"]


def test_a_paused_runs_handle_names_its_gate_when_time_is_up(store, flow):
    handle = store.start(flow, {"n": 1, "ask": True}, id="r")
    gate = flow.run(store, id="r").gates[0]

    with pytest.raises(keepstep.ResultTimedOut, match=gate) as raised:
        handle.result(timeout=0)
    assert (raised.value.status, raised.value.gates) == ("paused", (gate,))


def test_a_run_that_nobody_carries_says_so_when_time_is_up(store, flow):
    handle = store.start(flow, {"n": 1}, id="r")

    with pytest.raises(keepstep.ResultTimedOut, match="is there a worker"):
        handle.result(timeout=0)


def test_a_cancelled_runs_handle_says_by_whom(store, flow):
    handle = store.start(flow, {"n": 1}, id="r")
    store.cancel("r", by="carol", reason="a mistake")

    with pytest.raises(keepstep.RunCancelled, match="by carol \\(a mistake\\)"):
        handle.result()


def test_a_handle_of_no_run_says_so(store):
    handle = store.handle("nothing")

    for ask in (handle.result, handle.look, handle.status):
        with pytest.raises(keepstep.NoSuchRun):
            ask()


def test_who_waits_is_told_when_another_process_has_carried_the_run_to_its_end(place, flow):
    waiting, other = place.open(), place.open()
    handle = waiting.start(flow, {"n": 4}, id="r")
    carrying = threading.Timer(0.05, lambda: flow.run(other, id="r"))
    carrying.start()

    assert handle.result() == 8
    carrying.join()


def test_a_started_run_has_what_look_shows_of_its_version(store, flow):
    store.start(flow, {"n": 4}, id="r")

    assert store.look("r").flow_version == "1"
    assert store.look("r").attempts == 0
    store.save("s", {}, workflow="w")
    assert store.look("s").flow_version is None


# --- reopening -------------------------------------------------------------------------------------------------------


def test_a_failed_run_is_brought_back_and_goes_on(store, flow):
    handle = store.start(flow, {"n": -1}, id="r")
    flow.run(store, id="r")
    store.reopen("r", by="carol", reason="mended")

    assert handle.status() == "ready"
    assert [one.run_id for one in store.due().items] == ["r"]
    assert kinds_of(store)[-1] == "reopened"


@pytest.mark.parametrize("status", ["ready", "finished", "cancelled", "paused"])
def test_only_a_failed_run_is_reopened(store, flow, status):
    store.start(flow, {"n": 1, "ask": status == "paused"}, id="r")
    if status in ("finished", "paused"):
        flow.run(store, id="r")
    if status == "cancelled":
        store.cancel("r")

    with pytest.raises(keepstep.NotAllowed, match=status):
        store.reopen("r")
    assert store.look("r").status == status


def test_what_cannot_be_reopened_is_refused(store):
    with pytest.raises(keepstep.NoSuchRun):
        store.reopen("nothing")
    with pytest.raises(keepstep.BadInput, match="reason="):
        store.reopen("nothing", reason=7)
    with pytest.raises(keepstep.BadInput, match="by="):
        store.reopen("nothing", by="")


def test_what_is_no_flow_cannot_be_started(store):
    for wrong in (lambda run: None, "refund", None):
        with pytest.raises(keepstep.BadInput, match="is no flow"):
            store.start(wrong, {})
