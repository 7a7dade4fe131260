"""A mark notes that a tool was run elsewhere: the run will not run it."""

import pytest

import keepstep
from tests.api.test_threads import at_once


def test_a_mark_creates_the_run(store):
    assert store.mark("r", "call-1", tool="pay", target="card 7", reversible=True)

    look = store.look("r")
    assert (look.workflow, look.status, look.step) == ("marked", "ready", None)
    (effect,) = store.effects("r")
    assert (effect.key, effect.tool, effect.target, effect.status) == ("call-1", "pay", "card 7", "returned")
    assert (effect.reversible, effect.is_memo, effect.result) == (True, False, None)
    assert store.verify("r").ok


def test_a_mark_goes_to_a_run_that_is_there(store):
    store.save("r", {"n": 1}, workflow="w")

    assert store.mark("r", "call-1", tool="pay", workflow="other")

    assert (store.look("r").workflow, store.load("r").state) == ("w", {"n": 1})


def test_a_second_mark_is_no_mark(store):
    store.mark("r", "call-1", tool="pay")
    digest = store.look("r").digest

    assert not store.mark("r", "call-1", tool="pay")

    assert store.look("r").digest == digest
    assert store.mark("r", "call-2", tool="pay")


def test_a_marked_key_does_not_run(store):
    store.mark("r", "call-1", tool="pay", workflow="w")
    calls = []

    with store.run("r", "w") as run:
        assert run.using(key="call-1").once(calls.append, "paid") is None
        run.using(key="call-2").once(calls.append, "paid as well")

    assert calls == ["paid as well"]


def test_four_threads_that_mark_at_once_lose_nothing(store):
    def work(name):
        return [store.mark("r", f"{name}-{number}", tool="pay") for number in range(5)]

    told = at_once(*(lambda name=name: work(name) for name in "abcd"))

    assert told == [[True] * 5] * 4
    assert sorted(one.key for one in store.effects("r")) == sorted(f"{name}-{n}" for name in "abcd" for n in range(5))
    assert store.verify("r").ok


def test_four_threads_that_mark_the_same_at_once_mark_it_once(store):
    told = at_once(*[lambda: store.mark("r", "call-1", tool="pay")] * 4)

    assert sorted(told) == [False, False, False, True]
    assert len(store.effects("r")) == 1


def test_two_owners_that_mark_at_once_lose_nothing(place):
    stores = [place.open() for _ in range(2)]

    told = at_once(*(lambda store=store, n=n: store.mark("r", f"k{n}", tool="pay") for n, store in enumerate(stores)))

    assert told == [True, True]
    assert sorted(one.key for one in stores[0].effects("r")) == ["k0", "k1"]


@pytest.mark.parametrize("error", [None, keepstep.NotDone(), ValueError()], ids=["returned", "raised", "doubted"])
def test_a_key_under_which_an_effect_began_is_not_marked(store, error):
    def pay():
        if error is not None:
            raise error

    try:
        with store.run("r", "w") as run:
            run.using(key="call-1", unsure="raise").once(pay)
    except (keepstep.NotDone, keepstep.EffectInDoubt):
        pass
    digest = store.look("r").digest

    with pytest.raises(keepstep.RunExists, match="call-1"):
        store.mark("r", "call-1", tool="pay")

    assert store.look("r").digest == digest


def test_a_key_marked_for_another_tool_is_refused(store):
    store.mark("r", "call-1", tool="pay")

    with pytest.raises(keepstep.RunExists):
        store.mark("r", "call-1", tool="refund")


def test_a_held_run_is_not_marked_by_others(place):
    holder, other = place.open(), place.open()
    holder.claim("r", "w")

    with pytest.raises(keepstep.NotAllowed, match="held"):
        other.mark("r", "call-1", tool="pay")


@pytest.mark.parametrize(
    ("run_id", "key", "options"),
    [
        ("", "k", {}),
        ("r", "", {}),
        ("r", None, {}),
        ("r", 5, {}),
        ("r", "half a pair: \ud800", {}),
        ("r", "k", {"tool": ""}),
        ("r", "k", {"tool": 5}),
        ("r", "k", {"target": 5}),
        ("r", "k", {"workflow": ""}),
    ],
)
def test_a_mark_that_makes_no_sense_is_refused(store, run_id, key, options):
    with pytest.raises(keepstep.BadInput):
        store.mark(run_id, key, **{"tool": "pay", **options})

    assert store.runs().items == []
