"""A run remembers the version of its flow; a newer one carries it only if it says how its state is lifted."""

import dataclasses

import pytest

import keepstep
from keepstep.flows.versions import Crowd


def first_version():
    flow = keepstep.Flow("refund", start="assess", version=1)

    @flow.step
    def assess(run, state):
        state["total"] = run.once(lambda: 5)
        return "ask_boss"

    @flow.step
    def ask_boss(run, state):
        run.confirm("Pay?")
        return run.finish(("old", state))

    return flow


def second_version(*, lifts=True):
    flow = keepstep.Flow("refund", start="assess", version=2)

    @flow.step
    def assess(run, state):
        return check

    @flow.step
    def check(run, state):
        state["checked"] = run.confirm("Pay?")
        return pay

    @flow.step
    def pay(run, state):
        return run.finish(("new", state))

    if lifts:

        @flow.migrate(from_version=1, steps={"ask_boss": "check"})
        def lift(state):
            return {"amount": state["total"], "order": state["order"]}

    return flow


def test_a_run_remembers_the_version_of_its_flow(store):
    first_version().run(store, {"order": 7}, id="r")

    assert store.look("r").flow_version == "1"


def test_another_version_leaves_a_run_alone_and_says_which_it_has(store):
    paused = first_version().run(store, {"order": 7}, id="r")
    store.answer(paused.gates[0], True)

    outcome = second_version(lifts=False).run(store, id="r")

    assert outcome.status == "ready"
    assert isinstance(outcome.error, keepstep.WrongVersion)
    assert (outcome.error.has, outcome.error.knows) == ("1", ("2",))
    assert first_version().run(store, id="r").result == ("old", {"order": 7, "total": 5})


def test_a_newer_version_lifts_the_state_and_goes_on_at_the_step_as_it_is_called_now(store):
    paused = first_version().run(store, {"order": 7}, id="r")
    store.answer(paused.gates[0], True)

    outcome = second_version().run(store, id="r")

    assert outcome.result == ("new", {"amount": 5, "order": 7, "checked": True})
    assert store.look("r").flow_version == "2"
    assert store.at("r", step=1).state == {"order": 7, "total": 5}


def test_a_run_has_the_newer_version_from_its_next_checkpoint_and_not_before(store):
    first_version().run(store, {"order": 7}, id="r")

    second_version().run(store, id="r")  # its question is asked anew, by the same words: it is the same question

    assert store.look("r").flow_version == "1"
    store.answer(store.look("r").gates[0], True)
    assert second_version().run(store, id="r").finished
    assert store.look("r").flow_version == "2"


def test_what_an_older_version_did_in_the_step_it_was_cut_off_in_is_not_done_again(store):
    calls: list[str] = []
    old = keepstep.Flow("cut", version=1)

    @old.step(name="pay")
    def pay_old(run, state):
        run.once(calls.append, "paid")
        raise keepstep.Stop

    new = keepstep.Flow("cut", version=2)

    @new.step(name="pay")
    def pay_new(run, state):
        run.once(calls.append, "paid")
        return run.finish(state)

    new.migrate(from_version=1)(lambda state: {**state, "lifted": True})
    old.run(store, {"n": 1}, id="r")

    assert new.run(store, id="r").result == {"n": 1, "lifted": True}
    assert calls == ["paid"]


def test_versions_are_lifted_one_after_another(store):
    old = keepstep.Flow("chain", version="a", start="one")
    old.step(name="one")(lambda run, state: run.confirm("?"))
    new = keepstep.Flow("chain", version="c", start="three")
    new.step(name="three")(lambda run, state: run.finish(state))
    new.migrate(from_version="a", to_version="b", steps={"one": "two"})(lambda state: [*state, "b"])
    new.migrate(from_version="b", steps={"two": "three"})(lambda state: [*state, "c"])
    store.answer(old.run(store, ["a"], id="r").gates[0], True)

    assert new.run(store, id="r").result == ["a", "b", "c"]


@dataclasses.dataclass
class OldOrder:
    number: int


@dataclasses.dataclass
class NewOrder:
    number: int
    customer: str


def test_a_typed_state_is_lifted_to_its_newer_type(store, clock):
    old = keepstep.Flow("typed", version=1, state=OldOrder, start="wait")
    new = keepstep.Flow("typed", version=2, state=NewOrder, start="wait")
    old.step(name="wait")(lambda run, state: run.sleep(60))
    calls = []

    @new.step(name="wait", retries=1, backoff=0)
    def wait(run, state):
        calls.append(state)
        if len(calls) == 1:
            raise ValueError
        return "end"

    new.step(name="end")(lambda run, state: run.finish(state))
    new.migrate(from_version=1)(lambda fields: {**fields, "customer": "ada"})
    old.run(store, {"number": 7}, id="r")
    clock.turn(61)

    assert new.run(store, id="r").result == NewOrder(7, "ada")
    assert calls == [NewOrder(7, "ada"), NewOrder(7, "ada")]


def test_a_lift_that_raises_fails_the_run_which_can_be_reopened(store):
    paused = first_version().run(store, {"order": 7}, id="r")
    store.answer(paused.gates[0], True)
    broken = second_version(lifts=False)
    broken.migrate(from_version=1)(lambda state: state["nothing"])

    outcome = broken.run(store, id="r")

    assert outcome.status == "failed"
    assert isinstance(outcome.error, KeyError)
    store.reopen("r")
    assert second_version().run(store, id="r").finished


def lifted(store):
    """A run whose last checkpoint alone is of the second version."""
    paused = first_version().run(store, {"order": 7}, id="r")
    store.answer(paused.gates[0], True)
    second_version().run(store, id="r")
    assert store.look("r").flow_version == "2"


def test_a_fork_is_of_the_version_of_its_checkpoint(store):
    lifted(store)

    assert store.fork("r", id="s").flow_version == "2"
    assert store.fork("r", at=1, id="t").flow_version == "1"
    outcome = second_version().run(store, id="t")
    store.answer(outcome.gates[0], True)
    assert second_version().run(store, id="t").result == ("new", {"amount": 5, "order": 7, "checked": True})


def test_going_back_goes_back_to_the_version_of_the_checkpoint(store):
    lifted(store)

    store.rollback("r", to=1)

    assert store.look("r").flow_version == "1"
    outcome = second_version().run(store, id="r")
    store.answer(outcome.gates[0], True)
    assert second_version().run(store, id="r").result == ("new", {"amount": 5, "order": 7, "checked": True})


def test_the_fingerprint_changes_with_the_steps_and_not_with_what_is_in_them():
    def made(*names, state=None, start=None):
        flow = keepstep.Flow("f", state=state, start=start)
        for name in names:
            flow.step(name=name)(lambda run, state: None)
        return flow.fingerprint

    assert made("a", "b") == made("a", "b")
    assert made("a", "b", start="a") == made("b", "a", start="a")
    assert len({made("a"), made("a", "b"), made("b", "a"), made("a", state=OldOrder), made("a", state=NewOrder)}) == 5


# --- several versions in one worker ----------------------------------------------------------------------------------


def test_of_several_versions_a_run_gets_its_own_or_the_last_that_can_lift_it():
    old, new, newest = first_version(), second_version(), keepstep.Flow("refund", version=3)
    newest.migrate(from_version=1)(dict)
    newest.migrate(from_version=2)(dict)
    from keepstep.log.fold import Fold

    def chosen(flows, version):
        return Crowd(flows).flow_for(Fold(workflow="refund", flow_version=version))

    assert chosen([old, new], "1") is old
    assert chosen([new, newest], "1") is newest
    assert chosen([old, new, newest], "2") is new
    assert chosen([old], "2") is None
    assert chosen([old], None) is old
    assert Crowd([old]).flow_for(Fold(workflow="other")) is None


def test_migrations_that_contradict_each_other_are_refused():
    flow = second_version()

    for wrong in (1, 2):
        with pytest.raises(keepstep.BadInput, match="lifted"):
            flow.migrate(from_version=wrong)(dict)
