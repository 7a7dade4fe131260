"""What runs weigh, and how large things may be."""

import warnings

import pytest

import keepstep
from keepstep.engine import checkpoints


def test_a_size_names_the_heaviest_key_first(store):
    store.save("r", {"small": 1, "large": "x" * 5000, "middle": list(range(100))}, workflow="w")

    size = store.size("r")

    assert list(size.by_key) == ["large", "middle", "small"]
    assert size.by_key["large"] >= 5000
    assert sum(size.by_key.values()) <= size.state
    assert size.runs == 1


def test_a_size_counts_what_is_stored(store):
    with store.run("r", "w") as run:
        for number in range(10):
            run.save({"n": number, "text": "x" * 2000})

    size = store.size("r")

    assert size.records == store.look("r").seq
    assert size.total == size.heads + size.bodies
    assert size.bodies == sum(one.stored_bytes for one in store.history("r").items)
    assert size.bodies < 10 * 2000 < 10 * size.state


@pytest.mark.parametrize("state", [None, [1, 2], "text"])
def test_a_state_without_keys_has_a_size_too(store, state):
    store.save("r", state, workflow="w")

    assert store.size("r").state > 0


def test_a_run_without_a_state_weighs_its_records(store):
    store.claim("r", "w").close()

    size = store.size("r")
    assert (size.state, size.by_key) == (0, {})
    assert size.records == 3


def test_the_whole_store_is_the_sum_of_its_runs(place):
    store = place.open()
    for number in range(3):
        store.save(f"r{number}", {"text": "x" * 1000 * number}, workflow="w")
    each = [store.size(f"r{number}") for number in range(3)]

    whole = store.size()

    assert whole.runs == 3
    assert whole.records == sum(one.records for one in each)
    assert whole.heads == sum(one.heads for one in each)
    assert whole.bodies == sum(one.bodies for one in each)
    if place.kind != "memory":  # which has no files
        assert whole.total > whole.heads + whole.bodies


# --- limits ----------------------------------------------------------------------------------------------------------


def test_a_state_over_the_limit_is_refused_with_what_weighs_most(place):
    store = place.open(limits=keepstep.Limits(state_bytes=10_000))
    with store.run("r", "w") as run:
        run.save({"n": 1})
        with pytest.raises(keepstep.TooLarge, match=r"10,000.*'pages' 2\d,\d\d\d"):
            run.save({"n": 2, "pages": "x" * 20_000})
        run.save({"n": 3})

    assert store.load("r").state == {"n": 3}
    assert store.load("r").step == 2
    with pytest.raises(keepstep.TooLarge):
        store.save("r", "x" * 20_000)
    with pytest.raises(keepstep.TooLarge):
        store.fork("r", edits={"pages": "x" * 20_000}, id="r-b")


def test_a_state_of_just_the_limit_is_kept(place):
    probe = place.open()
    probe.save("probe", {"text": "x" * 5000}, workflow="w")
    limit = probe.size("probe").state
    store = place.open(limits=keepstep.Limits(state_bytes=limit, state_warn_bytes=limit))

    store.save("r", {"text": "x" * 5000}, workflow="w")

    with pytest.raises(keepstep.TooLarge):
        store.save("r", {"text": "x" * 5001})


def test_a_result_over_the_limit_is_refused(place):
    store = place.open(limits=keepstep.Limits(body_bytes=1000))
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.TooLarge, match="result"):
            run.finish("x" * 2000)
        run.finish("x" * 900)

    assert store.look("r").result == "x" * 900


def test_ids_may_be_limited_otherwise(place):
    store = place.open(limits=keepstep.Limits(id_bytes=4))
    store.save("abcd", {}, workflow="w")

    with pytest.raises(keepstep.BadInput):
        store.save("abcde", {}, workflow="w")


@pytest.fixture
def unwarned(monkeypatch):
    """As in a process that has not warned yet."""
    monkeypatch.setattr(checkpoints, "_warned", False)


def test_a_large_state_is_warned_about_once(place, unwarned):
    store = place.open(limits=keepstep.Limits(state_warn_bytes=1000))

    def save_thrice():
        with store.run("r", "w") as run:
            for number in range(3):
                run.save({"n": number, "pages": "x" * 2000})

    with pytest.warns(keepstep.LargeStateWarning, match="'pages'") as warned:
        save_thrice()

    assert len(warned) == 1
    assert store.load("r").state["n"] == 2


def test_a_warning_made_an_error_loses_nothing(place, unwarned):
    store = place.open(limits=keepstep.Limits(state_warn_bytes=1000))

    with store.run("r", "w") as run, warnings.catch_warnings():
        warnings.simplefilter("error")
        run.save({"n": 1})
        with pytest.raises(keepstep.LargeStateWarning):
            run.save({"n": 2, "pages": "x" * 2000})
        run.save({"n": 3, "pages": "x" * 2000})

    assert store.load("r").state["n"] == 3
    assert store.verify("r").ok
