"""A flow whose process dies at any operation of its store ends like one to which nothing befell."""

import itertools

import pytest

import keepstep
from keepstep.testing import crash_everywhere
from tests.kinds import kinds_of


@pytest.fixture(params=["dir", "sqlite"])
def places(request, folder):
    numbers = itertools.count()
    return lambda: f"{request.param}:{folder}/store {next(numbers)}"


def test_a_flow_ends_alike_wherever_its_process_dies(places):
    def tell(what):
        return what

    raised: set[int] = set()
    flow = keepstep.Flow("story", start="one")

    @flow.step
    def one(run, state):
        state["one"] = run.using(key="one", idempotent=True).once(tell, "one")
        return two

    @flow.step(retries=2, backoff=0)
    def two(run, state):
        state["two"] = state.get("two", 0) + run.memo(len, "two")
        if run.epoch not in raised:
            raised.add(run.epoch)
            raise ValueError
        return three

    @flow.step
    def three(run, state):
        state["three"] = run.using(key="three", idempotent=True).once(tell, "three")
        return run.finish(dict(state))

    def work(store):
        raised.clear()
        outcome = flow.run(store, {"n": 1}, id="r")
        assert outcome.finished, outcome

    def check(store):
        assert store.look("r").result == {"n": 1, "one": "one", "two": 3, "three": "three"}
        assert store.look("r").state == store.look("r").result
        assert [one.step for one in store.history("r", newest_first=False).items] == [0, 1, 2, 3]
        assert kinds_of(store).count("finished") == kinds_of(store).count("opened") == 1
        assert store.verify("r").ok

    assert crash_everywhere(places, work, check) > 20


def test_starting_a_run_is_whole_or_not_at_all_wherever_the_process_dies(places):
    flow = keepstep.Flow("started")
    flow.step(name="only")(lambda run, state: run.finish(state["n"]))

    def work(store):
        assert store.start(flow, {"n": 7}, id="r", tags={"customer": "ada"}).id == "r"

    def check(store):
        look = store.look("r")
        assert (look.status, look.state, look.next, look.tags) == ("ready", {"n": 7}, "only", {"customer": "ada"})
        assert kinds_of(store) == ["opened", "saved", "tagged"]

    assert crash_everywhere(places, work, check) >= 2


def test_a_retry_is_counted_once_however_often_its_process_dies(places):
    """Between the record that a step raised and the next try there may be a death; that is no try."""
    flow = keepstep.Flow("counted")
    tries: list[int] = []

    @flow.step(retries=3, backoff=0)
    def work_step(run, state):
        tries.append(run.epoch)
        raise ValueError("always")

    def work(store):
        if store.runs("counted").items and store.look("r").status == "failed":
            return
        assert flow.run(store, {}, id="r").status == "failed"

    def check(store):
        assert kinds_of(store).count("noted") == 3
        assert store.look("r").error["message"] == "always"

    assert crash_everywhere(places, work, check) > 6
