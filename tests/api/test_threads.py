"""One store, and one run, used from many threads and tasks at once."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import keepstep
from keepstep.runtime.clock import SystemClock
from keepstep.store.memory import MemoryStore

THREADS = 8


def at_once(*works) -> list[Any]:
    """What each work gives, all begun at one time in threads of their own; or its error."""
    start = threading.Barrier(len(works))

    def one(work):
        start.wait()
        try:
            return work()
        except keepstep.KeepstepError as error:
            return error

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(one, works))


def test_threads_with_runs_of_their_own_do_not_meet(store):
    def work(name):
        with store.run(name, "w") as run:
            for number in range(10):
                run.save({"name": name, "n": number})
            run.finish(name)

    at_once(*(lambda name=f"r{number}": work(name) for number in range(THREADS)))

    for number in range(THREADS):
        look = store.look(f"r{number}")
        assert (look.status, look.result, look.state) == ("finished", f"r{number}", {"name": f"r{number}", "n": 9})
        assert store.verify(f"r{number}").ok


def test_one_run_is_saved_and_remarked_on_from_many_threads(store):
    with store.run("r", "w") as run:

        def work(name):
            steps = {}
            for number in range(5):
                steps[run.save({"by": name, "n": number})] = (name, number)
                run.note(name)
                run.tag({name: number})
            return steps

        told = at_once(*(lambda name=f"t{number}": work(name) for number in range(THREADS)))

    steps = {step: by for one in told for step, by in one.items()}
    assert sorted(steps) == list(range(1, 5 * THREADS + 1))
    for step, (name, number) in steps.items():
        assert store.at("r", step=step).state == {"by": name, "n": number}
    assert store.look("r").tags == {f"t{number}": 4 for number in range(THREADS)}
    assert store.verify("r").ok


def test_one_of_many_threads_gets_the_claim(store):
    claims = at_once(*[lambda: store.claim("r", "w")] * THREADS)

    winners = [one for one in claims if not isinstance(one, keepstep.RunHeld)]
    assert len(winners) == 1
    winners[0].save([1])


def test_one_of_many_stores_gets_the_claim(place):
    stores = [place.open() for _ in range(4)]

    claims = at_once(*(lambda store=store: store.claim("r", "w") for store in stores))

    assert sorted(type(one).__name__ == "RunHeld" for one in claims) == [False, True, True, True]
    assert stores[0].look("r").epoch == 1


def test_plain_saves_of_one_run_from_many_threads_lose_nothing(store):
    def work(name):
        return {store.save("r", {"by": name, "n": number}, workflow="w"): (name, number) for number in range(5)}

    told = at_once(*(lambda name=f"t{number}": work(name) for number in range(4)))

    steps = {step: by for one in told for step, by in one.items()}
    assert sorted(steps) == list(range(1, 21))
    for step, (name, number) in steps.items():
        assert store.at("r", step=step).state == {"by": name, "n": number}


def test_due_runs_are_shared_by_threads(store):
    for number in range(20):
        store.save(f"r{number}", {}, workflow="w")

    def work():
        taken = []
        while claimed := store.claim_due(limit=3):
            taken += [run.id for run in claimed]
        return taken

    taken = [run_id for one in at_once(*[work] * 4) for run_id in one]

    assert sorted(taken) == sorted(f"r{number}" for number in range(20))


def test_reading_goes_on_beside_writing(store):
    store.save("r", {"n": 0, "same": 0}, workflow="w")
    stop = threading.Event()

    def write():
        for number in range(1, 40):
            store.save("r", {"n": number, "same": number})
        stop.set()

    def read():
        while not stop.is_set():
            state = store.load("r").state
            assert state["n"] == state["same"]
            assert store.look("r").step <= store.history("r").items[0].step

    assert at_once(write, read, read) == [None, None, None]


def test_closing_while_others_save_loses_nothing_that_returned(place):
    store = place.open()
    saved = {f"r{number}": 0 for number in range(4)}
    going = threading.Barrier(5)

    def work(name):
        with store.run(name, "w") as run:
            going.wait()
            while True:
                saved[name] = run.save({"n": saved[name]})

    def close():
        going.wait()
        while min(saved.values()) < 3:
            pass
        store.close()

    ends = at_once(close, *(lambda name=name: work(name) for name in saved))

    assert all(isinstance(end, keepstep.KeepstepError) for end in ends[1:])
    again = place.open()
    for name, step in saved.items():
        assert again.look(name).step in (step, step + 1)
        assert again.look(name).status == "ready"
        assert again.verify(name).ok


# --- commits are grouped ---------------------------------------------------------------------------------------------


class GatedStore(MemoryStore):
    """The first commit after `close_gate` waits at a gate; so what comes meanwhile has to wait for it."""

    def __init__(self):
        super().__init__(SystemClock())
        self.sizes = []
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def close_gate(self):
        self.gate.clear()
        self.sizes.clear()
        self.entered.clear()

    async def commit(self, batch):
        self.sizes.append(len(batch))
        self.entered.set()
        assert self.gate.wait(30)
        return await super().commit(batch)


def in_threads(works):
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    return threads


def until(condition):
    """Wait for something that another thread is on the way to."""
    for _ in range(10_000):
        if condition():
            return
        threading.Event().wait(0.001)
    raise AssertionError("it does not come")


def test_what_waits_goes_into_one_commit():
    gated = GatedStore()
    with keepstep.open(gated) as store:
        runs = [store.claim(f"r{number}", "w") for number in range(10)]
        gated.close_gate()

        first = in_threads([lambda: runs[0].save(0)])
        assert gated.entered.wait(30)
        others = in_threads([lambda run=run: run.save(1) for run in runs[1:]])
        until(lambda: len(store._session.engine.queue._waiting) == 9)
        gated.gate.set()
        for thread in (*first, *others):
            thread.join()

        assert gated.sizes == [1, 9]
        assert all(store.load(run.id).step == 1 for run in runs)


def test_what_waits_of_one_run_is_one_append():
    gated = GatedStore()
    with keepstep.open(gated) as store:
        run = store.claim("r", "w")
        gated.close_gate()

        first = in_threads([lambda: run.save(0)])
        assert gated.entered.wait(30)
        others = in_threads([lambda number=number: run.note(number) for number in range(9)])
        until(lambda: len(run._claim.writer._pending) == 9)
        gated.gate.set()
        for thread in (*first, *others):
            thread.join()

        assert gated.sizes == [1, 1]
        assert store.look("r").seq == 12
        assert store.verify("r").ok


def test_tasks_share_commits():
    gated = GatedStore()

    async def main():
        async with keepstep.open_async(gated) as store:
            runs = [await store.claim(f"r{number}", "w") for number in range(64)]
            gated.sizes.clear()
            for number in range(3):
                await asyncio.gather(*(run.save(number) for run in runs))
            return [(await store.load(run.id)).step for run in runs]

    assert asyncio.run(main()) == [3] * 64
    assert gated.sizes[:3] == [64, 64, 64]


def test_tasks_of_one_run_share_appends():
    gated = GatedStore()

    async def main():
        async with keepstep.open_async(gated) as store, store.run("r", "w") as run:
            gated.sizes.clear()
            await asyncio.gather(*(run.note(number) for number in range(64)))
            return len(gated.sizes), (await store.look("r")).seq

    found = asyncio.run(main())
    assert found is not None
    commits, seq = found
    assert commits <= 2
    assert seq == 66


def test_a_refused_save_harms_none_of_those_it_shares_a_commit_with():
    gated = GatedStore()
    with keepstep.open(gated) as store:
        run, other = store.claim("r", "w"), store.claim("other", "w")
        store.save("finished", 0, workflow="w")
        with store.run("finished") as ended:
            ended.finish()
        gated.close_gate()
        refused = []

        def save_finished():
            with pytest.raises(keepstep.NotAllowed):
                store.save("finished", 1)
            refused.append(True)

        first = in_threads([lambda: run.save(0)])
        assert gated.entered.wait(30)
        others = in_threads([lambda: other.save(1), save_finished, lambda: store.save("new", 1, workflow="w")])
        until(lambda: len(store._session.engine.queue._waiting) == 3)
        gated.gate.set()
        for thread in (*first, *others):
            thread.join()

        assert gated.sizes == [1, 3]
        assert refused == [True]
        assert store.load("other").step == 1
        assert store.load("new").step == 1
