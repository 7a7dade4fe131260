"""A worker inside this process: what it claims, how it carries it, and how it ends."""

import dataclasses
import logging
import threading
import time

import pytest

import keepstep
from keepstep.flows import retrying
from keepstep.runtime.clock import SystemClock
from keepstep.store.memory import MemoryStore
from keepstep.worker import tasks
from tests.handles import open_behind

LIMIT = 50
"""Seconds that are only taken when something is broken."""


@dataclasses.dataclass
class Strict:
    number: int


def double_flow(name="double", **how):
    flow = keepstep.Flow(name, start="double", **how)

    @flow.step
    def double(run, state):
        state["n"] *= 2
        return "end"

    @flow.step
    def end(run, state):
        return run.finish(state["n"])

    return flow


def until(store, run_id, status):
    """The run, once it has this status."""
    stop = time.monotonic() + LIMIT
    while (look := store.look(run_id)).status != status:
        assert time.monotonic() < stop, f"{run_id} is {look.status}: {look.error}"
        time.sleep(0.01)
    return look


# --- what it claims --------------------------------------------------------------------------------------------------


def test_it_carries_what_was_started_before_and_while_it_works(store):
    flow = double_flow()
    before = store.start(flow, {"n": 1})

    with store.worker(flow, poll=LIMIT):
        while_it_works = [store.start(flow, {"n": number}) for number in (2, 3)]
        results = [one.result(timeout=LIMIT) for one in (before, *while_it_works)]

    assert results == [2, 4, 6]


def test_it_wakes_for_what_another_process_starts(place, opened):
    flow = double_flow()
    with opened().worker(flow, poll=LIMIT):
        assert opened().start(flow, {"n": 4}).result(timeout=LIMIT) == 8


def test_an_answer_takes_a_run_on(store):
    flow = keepstep.Flow("asking")

    @flow.step
    def ask(run, state):
        return run.finish(run.ask("How much?", {"n": int})["n"])

    with store.worker(flow, poll=LIMIT):
        handle = store.start(flow, id="r")
        until(store, "r", "paused")
        store.answer(store.inbox().items[0].id, {"n": 7})
        assert handle.result(timeout=LIMIT) == 7


def test_a_message_takes_a_run_on(store):
    flow = keepstep.Flow("receiving")

    @flow.step
    def receive(run, state):
        return run.finish(run.receive("paid"))

    with store.worker(flow, poll=LIMIT):
        handle = store.start(flow, id="r")
        until(store, "r", "sleeping")
        store.send("r", "paid", 7)
        assert handle.result(timeout=LIMIT) == 7


def test_a_sleeper_goes_on_when_its_time_has_come(store):
    flow = keepstep.Flow("sleeping")

    @flow.step
    def sleep(run, state):
        run.sleep(0.2)
        return run.finish("awake")

    with store.worker(flow, poll=LIMIT):  # which is not waited for: the worker knows when its own sleepers are due
        assert store.start(flow).result(timeout=LIMIT) == "awake"


def test_what_another_worker_put_to_sleep_is_found_by_polling(opened):
    flow = keepstep.Flow("sleeping")

    @flow.step
    def sleep(run, state):
        run.sleep(0.2)
        return run.finish("awake")

    assert flow.run(opened(), id="r").status == "sleeping"
    store = opened()
    with store.worker(flow, poll=0.05):
        assert store.handle("r").result(timeout=LIMIT) == "awake"


def test_a_dead_owners_run_goes_on(disk_place, opened_on_disk):
    dead, store = opened_on_disk(), opened_on_disk()
    flow = double_flow()
    dead.start(flow, {"n": 3}, id="r")
    dead.claim("r")
    disk_place.kill(dead)

    with store.worker(flow, poll=0.05):
        assert store.handle("r").result(timeout=LIMIT) == 6
    assert store.look("r").epoch == 2


def test_it_carries_several_flows_and_nothing_of_others(store):
    first, second = double_flow("first"), double_flow("second")
    store.save("other", {"n": 1}, next="double", workflow="other")

    with store.worker(first, second, poll=0.05):
        assert store.start(first, {"n": 1}).result(timeout=LIMIT) == 2
        assert store.start(second, {"n": 2}).result(timeout=LIMIT) == 4

    assert store.look("other").status == "ready"


def test_it_carries_plain_loops(store):
    @keepstep.flow("loop")
    def loop(run):
        return run.memo(len, run.state)

    with store.worker(loop):
        assert store.start(loop, "abc").result(timeout=LIMIT) == 3


# --- many at once ----------------------------------------------------------------------------------------------------


def test_so_many_are_carried_at_once_and_not_more(store):
    at_once, most = 0, 0
    mutex, all_three = threading.Lock(), threading.Event()
    flow = keepstep.Flow("crowd")

    @flow.step
    def work(run, state):
        nonlocal at_once, most
        with mutex:
            at_once += 1
            most = max(most, at_once)
            if at_once == 3:
                all_three.set()
        assert all_three.wait(LIMIT)
        with mutex:
            at_once -= 1

    handles = [store.start(flow, {}) for _ in range(9)]
    with store.worker(flow, concurrency=3):
        for one in handles:
            one.result(timeout=LIMIT)

    assert most == 3


def test_a_flood_of_one_workflow_does_not_keep_another_waiting(store):
    order: list[str] = []
    begun, go_on = threading.Event(), threading.Event()
    flood, other = keepstep.Flow("flood"), keepstep.Flow("other")

    @flood.step
    def fails_fast(run, state):
        order.append("flood")
        begun.set()
        assert go_on.wait(LIMIT)
        raise ValueError

    @other.step
    def works(run, state):
        order.append("other")

    with store.worker(flood, other, concurrency=1):
        store.start(flood, {})
        assert begun.wait(LIMIT)
        handles = [store.start(flood, {}) for _ in range(20)]
        handles += [store.start(other, {}) for _ in range(2)]
        go_on.set()
        for one in handles[-2:]:
            one.result(timeout=LIMIT)

    assert order.index("other") <= 2
    assert [place for place, name in enumerate(order) if name == "other"][1] <= 4


# --- what raises -----------------------------------------------------------------------------------------------------


def test_a_run_that_raises_fails_and_is_brought_back_by_reopening_it(store):
    broken = [True]
    flow = keepstep.Flow("broken")

    @flow.step
    def work(run, state):
        if broken:
            raise ValueError("broken")
        return run.finish("mended")

    with store.worker(flow, poll=LIMIT):
        handle = store.start(flow, id="r")
        with pytest.raises(keepstep.RunFailed, match="ValueError: broken"):
            handle.result(timeout=LIMIT)
        broken.clear()
        store.reopen("r")
        assert handle.result(timeout=LIMIT) == "mended"


def test_a_long_wait_before_another_try_holds_no_run(store, monkeypatch):
    monkeypatch.setattr(retrying, "SHORT_SECONDS", 0.0)
    tries = []
    flow = keepstep.Flow("waiting")

    @flow.step(retries=3, backoff=0.05)
    def work(run, state):
        tries.append(1)
        if len(tries) < 3:
            raise ValueError
        return run.finish("done")

    with store.worker(flow, poll=LIMIT):
        assert store.start(flow, id="r").result(timeout=LIMIT) == "done"
    assert store.look("r").epoch == 3


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, keepstep.Stop])
def test_what_would_end_a_program_ends_neither_the_worker_nor_the_run(store, raised):
    calls = []
    flow = keepstep.Flow("leaving")

    @flow.step
    def work(run, state):
        calls.append(1)
        if len(calls) == 1:
            raise raised
        return run.finish("done")

    with store.worker(flow, concurrency=2):
        assert store.start(flow).result(timeout=LIMIT) == "done"


def test_a_run_that_cannot_be_read_fails_and_is_not_claimed_for_ever(store):
    flow = keepstep.Flow("typed", state=Strict)
    flow.step(name="only")(lambda run, state: None)
    store.save("r", {"other": 1}, next="only", workflow="typed")

    with store.worker(flow):
        assert until(store, "r", "failed").error["type"].endswith("StateMismatch")


def test_a_run_that_is_cancelled_while_it_is_carried_ends(store):
    begun, go_on = threading.Event(), threading.Event()
    flow = keepstep.Flow("cancelled")

    @flow.step
    def work(run, state):
        begun.set()
        assert go_on.wait(LIMIT)
        run.note("after that")

    with store.worker(flow):
        handle = store.start(flow, id="r")
        assert begun.wait(LIMIT)
        store.cancel("r", by="carol")
        go_on.set()
        with pytest.raises(keepstep.RunCancelled):
            handle.result(timeout=LIMIT)


def test_a_run_that_ended_its_worker_too_often_is_given_up(disk_place, opened_on_disk):
    flow = double_flow()
    keeper = opened_on_disk()
    keeper.start(flow, {"n": 1}, id="r")
    for _ in range(3):
        dead = opened_on_disk()
        dead.claim("r")
        disk_place.kill(dead)
    assert keeper.look("r").deaths == 2

    with keeper.worker(flow, poll=0.05, deaths=3), pytest.raises(keepstep.RunFailed) as raised:
        keeper.handle("r").result(timeout=LIMIT)

    assert raised.value.type == "keepstep.errors.TooManyDeaths"
    assert "ended its worker 3 times in step 'double'" in str(raised.value)
    assert [one.run_id for one in keeper.runs(status="failed").items] == ["r"]
    keeper.reopen("r", by="carol", reason="more memory")
    assert not keeper.inbox().items
    with keeper.worker(flow, deaths=3):
        assert keeper.handle("r").result(timeout=LIMIT) == 2


@pytest.mark.parametrize("outcome", ["retry", "leave"])
def test_a_run_that_was_given_up_stands_in_the_inbox(disk_place, opened_on_disk, outcome):
    flow = double_flow()
    keeper = opened_on_disk()
    keeper.start(flow, {"n": 1}, id="r")
    for _ in range(2):
        dead = opened_on_disk()
        dead.claim("r")
        disk_place.kill(dead)
    with keeper.worker(flow, poll=0.05, deaths=2), pytest.raises(keepstep.RunFailed):
        keeper.handle("r").result(timeout=LIMIT)

    [gate] = keeper.inbox().items
    assert (gate.run_id, gate.about, gate.status) == ("r", "deaths", "open")
    assert "ended its worker 2 times" in gate.prompt
    with pytest.raises(keepstep.InvalidAnswer):
        keeper.answer(gate.id, {"outcome": "maybe"})
    assert keeper.answer(gate.id, {"outcome": outcome}, by="carol").by == "carol"

    assert not keeper.inbox().items
    assert keeper.look("r").status == ("ready" if outcome == "retry" else "failed")
    with pytest.raises(keepstep.AlreadyAnswered, match="carol"):
        keeper.answer(gate.id, {"outcome": "retry"})
    assert keeper.verify("r").ok
    if outcome == "retry":
        with keeper.worker(flow, deaths=2):
            assert keeper.handle("r").result(timeout=LIMIT) == 2


# --- versions --------------------------------------------------------------------------------------------------------


def test_runs_of_a_version_that_is_not_here_are_left_alone_and_that_is_said_once(store, caplog):
    old, new = double_flow(version=1), double_flow(version=2)
    for _ in range(3):
        store.start(old, {"n": 1})
    with caplog.at_level(logging.INFO, "keepstep.worker"), store.worker(new, poll=0.02):
        assert store.start(new, {"n": 2}).result(timeout=LIMIT) == 4
        assert store.start(new, {"n": 3}).result(timeout=LIMIT) == 6

    assert len(store.runs(status="ready").items) == 3
    (said,) = [one for one in caplog.records if one.event == "strange"]
    assert (said.workflow, said.version, said.here) == ("double", "1", ["2"])


def test_old_and_new_workers_side_by_side_carry_each_its_own(opened):
    def of_version(version):
        flow = keepstep.Flow("side", version=version)
        flow.step(name="tell")(lambda run, state: run.finish(version))
        return flow

    old, new, store = of_version(1), of_version(2), opened()
    with opened().worker(old, poll=0.05), opened().worker(new, poll=0.05):
        handles = [store.start(flow, {}) for _ in range(6) for flow in (old, new)]
        assert [one.result(timeout=LIMIT) for one in handles] == [1, 2] * 6


def test_one_worker_carries_several_versions_and_lifts_what_it_can(store):
    first = keepstep.Flow("lifted", version=1, start="ask")
    second = keepstep.Flow("lifted", version=2, start="ask")
    first.step(name="ask")(lambda run, state: run.confirm("?") and None)
    second.step(name="ask")(lambda run, state: run.finish((run.confirm("?"), state)))
    second.migrate(from_version=1)(lambda state: {**state, "lifted": True})
    first.run(store, {"n": 1}, id="r")

    with store.worker(second, poll=LIMIT):
        store.answer(store.look("r").gates[0], True)
        assert store.handle("r").result(timeout=LIMIT) == (True, {"n": 1, "lifted": True})
    with store.worker(first, second, poll=LIMIT):
        store.start(first, {"n": 1}, id="s")
        until(store, "s", "paused")
        store.answer(store.look("s").gates[0], True)
        store.handle("s").result(timeout=LIMIT)
    assert [store.look(one).flow_version for one in "rs"] == ["2", "1"]


def test_the_same_version_with_other_steps_is_remarked_on_once(store, caplog):
    flow = double_flow()
    for _ in range(3):
        store.start(flow, {"n": 1})
    changed = double_flow()
    changed.step(name="another")(lambda run, state: None)

    with caplog.at_level(logging.INFO, "keepstep.worker"), store.worker(changed):
        assert store.start(changed, {"n": 2}).result(timeout=LIMIT) == 4
        for one in store.runs(status=["ready", "running", "finished"]).items:
            store.handle(one.run_id).result(timeout=LIMIT)

    assert len([one for one in caplog.records if one.event == "changed"]) == 1


# --- how it ends -----------------------------------------------------------------------------------------------------


def test_at_the_end_a_running_step_ends_and_the_next_one_does_not_begin(store):
    begun, go_on, second = threading.Event(), threading.Event(), []
    flow = keepstep.Flow("ending", start="one")

    @flow.step
    def one(run, state):
        begun.set()
        assert go_on.wait(LIMIT)
        state["one"] = True
        return "two"

    @flow.step
    def two(run, state):
        second.append(1)

    with store.worker(flow, grace=LIMIT) as worker:
        store.start(flow, {}, id="r")
        assert begun.wait(LIMIT)
        worker.stop()
        assert not worker.wait(timeout=0.05)
        assert worker.carrying == ("r",)
        go_on.set()
        assert worker.wait(timeout=LIMIT)

    look = store.look("r")
    assert (look.status, look.next, look.state) == ("ready", "two", {"one": True})
    assert not second


def test_when_the_grace_is_over_the_run_is_given_back_and_its_step_writes_no_more(store):
    begun, go_on, told = threading.Event(), threading.Event(), []
    flow = keepstep.Flow("endless")

    @flow.step
    def work(run, state):
        begun.set()
        assert go_on.wait(LIMIT)
        try:
            run.note("too late")
        except keepstep.WrongUse as error:
            told.append(str(error))
            raise
        finally:
            go_on.clear()

    with store.worker(flow, grace=0.05):
        store.start(flow, {}, id="r")
        assert begun.wait(LIMIT)

    assert store.look("r").status == "ready"
    go_on.set()
    stop = time.monotonic() + LIMIT
    while not told and time.monotonic() < stop:
        time.sleep(0.01)
    assert "had been left" in told[0]
    assert store.look("r").note is None


def test_a_call_that_the_end_cut_off_is_in_doubt_for_whoever_comes_next(store, monkeypatch):
    monkeypatch.setattr(tasks, "INTERRUPTED_SECONDS", 0.1)  # its thread cannot be interrupted
    begun, go_on = threading.Event(), threading.Event()
    flow = keepstep.Flow("paying")
    paid = []

    def pay():
        paid.append(1)
        begun.set()
        assert go_on.wait(LIMIT)

    @flow.step
    def work(run, state):
        run.using(key="p").once(pay)

    with store.worker(flow, grace=0):
        store.start(flow, {}, id="r")
        assert begun.wait(LIMIT)

    outcome = flow.run(store, id="r")
    go_on.set()
    assert outcome.status == "paused"
    assert store.gate(outcome.gates[0]).about == "doubt"
    assert paid == [1]


def test_what_ended_the_worker_comes_out_at_the_end_of_its_block():
    class Broken(MemoryStore):
        async def claim(self, workflows, limit, decide):
            raise RuntimeError("a defect")

    with keepstep.open(Broken(SystemClock())) as store:
        with pytest.raises(RuntimeError, match="a defect"), store.worker(double_flow()) as worker:
            worker.wait(timeout=LIMIT)
        with pytest.raises(ValueError, match="of the block") as raised, store.worker(double_flow()):
            raise ValueError("of the block")
        assert "RuntimeError: a defect" in raised.value.__notes__[0]


@pytest.mark.parametrize("door", [keepstep.open, open_behind])
def test_trouble_of_the_store_is_waited_out(door, caplog):
    class Troubled(MemoryStore):
        times = 3

        async def claim(self, workflows, limit, decide):
            if self.times:
                self.times -= 1
                raise [keepstep.StoreBusy, keepstep.StoreFull, keepstep.StoreFailed][self.times]("not now")
            return await super().claim(workflows, limit, decide)

    store = door(Troubled(SystemClock()))
    flow = double_flow()
    with caplog.at_level(logging.WARNING, "keepstep.worker"), store.worker(flow):
        assert store.start(flow, {"n": 1}).result(timeout=LIMIT) == 2
    store.close()

    assert [one.error for one in caplog.records if one.event == "trouble"] == ["StoreFailed", "StoreFull", "StoreBusy"]


# --- what it says ----------------------------------------------------------------------------------------------------


def test_it_touches_a_file_as_long_as_it_lives(store, tmp_path):
    alive = tmp_path / "alive"
    with store.worker(double_flow(), alive=alive):
        stop = time.monotonic() + LIMIT
        while not alive.exists():
            assert time.monotonic() < stop
            time.sleep(0.01)


def test_it_logs_run_step_and_epoch_and_nothing_that_is_in_a_run(store, caplog):
    flow = keepstep.Flow("secretive", start="one")

    @flow.step(retries=1, backoff=0.01)
    def one(run, state):
        run.once(len, "hunter2")
        if run.memo(len, state["password"]) and not state.get("seen") and store.look("r").attempts == 0:
            raise ValueError("hunter2")
        return "two"

    @flow.step
    def two(run, state):
        raise RuntimeError("hunter2")

    with caplog.at_level(logging.DEBUG, "keepstep.worker"), store.worker(flow):
        handle = store.start(flow, {"password": "hunter2"}, id="r")
        with pytest.raises(keepstep.RunFailed):
            handle.result(timeout=LIMIT)

    about = [one for one in caplog.records if getattr(one, "run_id", None) == "r"]
    assert [(one.event, one.step, one.epoch, one.error) for one in about] == [
        ("run claimed", "one", 1, None),
        ("step begins", "one", 1, None),
        ("step raised and is tried again", "one", 1, "ValueError"),
        ("step begins", "one", 1, None),
        ("step begins", "two", 1, None),
        ("run failed", "two", 1, "RuntimeError"),
    ]
    assert {one.workflow for one in about} == {"secretive"}
    assert "hunter2" not in caplog.text + "".join(str(vars(one)) for one in caplog.records)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"concurrency": 0}, "concurrency="),
        ({"concurrency": "many"}, "concurrency="),
        ({"poll": 0}, "poll="),
        ({"grace": "long"}, "grace="),
        ({"deaths": 0}, "deaths="),
        ({"alive": 7}, "alive="),
    ],
)
def test_what_makes_no_sense_is_refused_before_it_begins(store, how, said):
    with pytest.raises(keepstep.BadInput, match=said):
        store.worker(double_flow(), **how)


def test_it_needs_flows_that_can_be_carried(store):
    with pytest.raises(keepstep.BadInput, match="at least one"):
        store.worker()
    with pytest.raises(keepstep.BadInput, match="is no flow"):
        store.worker(lambda run: None)
    with pytest.raises(keepstep.BadInput, match="no steps"):
        store.worker(keepstep.Flow("empty"))


def test_a_store_that_only_reads_has_no_worker(disk_place, opened_on_disk):
    opened_on_disk().close()

    with pytest.raises(keepstep.ReadOnly, match="reading only"):
        opened_on_disk(read_only=True).worker(double_flow())


def test_a_sync_store_refuses_async_steps():
    flow = keepstep.Flow("async")

    @flow.step
    async def work(run, state):
        return None

    with keepstep.open("memory:") as store, pytest.raises(keepstep.WrongUse, match="open_async"):
        store.worker(flow)


def test_a_worker_works_once(store):
    worker = store.worker(double_flow())
    with pytest.raises(keepstep.WrongUse, match="has not begun"):
        worker.wait()
    with worker:
        pass
    with pytest.raises(keepstep.WrongUse, match="has begun already"), worker:
        pass
