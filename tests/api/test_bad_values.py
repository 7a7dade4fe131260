"""Values that have no stored form are refused with the path to them, wherever they are given; all others come back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

import keepstep

everywhere = pytest.mark.parametrize("place", ["memory-sync", "memory-async", "sqlite-sync"], indirect=True)

LONE = "a\ud800"  # half of a surrogate pair


class HttpClient:
    """What people leave in their state by mistake."""


@dataclass
class Message:
    text: str
    client: object = None


def nested(depth, inner):
    for _ in range(depth):
        inner = {"deeper": inner}
    return inner


def circle():
    found = {"list": []}
    found["list"].append(found)
    return found


REGISTRY = keepstep.Registry()
REGISTRY.register(Message, "message")

REFUSED = {
    "at the top": (HttpClient(), "{0} is an HttpClient, which cannot be stored; register it or leave it out."),
    "under a key": ({"a": HttpClient()}, '{0}["a"] is an HttpClient'),
    "in a field": (
        {"messages": [1, 2, 3, Message("hi", HttpClient())]},
        '{0}["messages"][3].client is an HttpClient, which cannot be stored; register it or leave it out.',
    ),
    "far down": ({"a": [{"b": ({"c": {5: HttpClient()}},)}]}, '{0}["a"][0]["b"][0]["c"][5] is an HttpClient'),
    "in a set": ({"a": {1j}}, '{0}["a"]{{...}} is a complex'),
    "as a key": ({"a": {HttpClient(): 1}}, '{0}["a"] (the key <HttpClient>) is an HttpClient'),
    "a class": ({"a": HttpClient}, '{0}["a"] is a type'),
    "a function": ({"a": len}, '{0}["a"] is a builtin_function_or_method'),
    "an error": ({"a": ValueError("x")}, '{0}["a"] is a ValueError'),
    "a circle": (circle(), '{0}["list"][0]'),
    "too deep": ({"a": nested(5000, 1)}, '{0}["a"]["deeper"]["deeper"]'),
}
"""A value, and what is said of it; {0} stands for what it was given as."""

KEPT = {
    "large whole numbers": [2**63, -(2**64), 10**40, -(10**5000), (1 << 70_000) - 1, 0, True, False],
    "numbers that are none": [math.inf, -math.inf, -0.0],
    "halves of pairs": {LONE: [LONE, {LONE: LONE}], "b": {"c": LONE}},
    "empty things": {"": "", "a": [[], {}, (), set(), frozenset(), b"", None]},
    "keys of all kinds": {1: "a", "1": "b", None: "c", (1, 2): "d", b"1": "e", 1.5: "f"},
    "nulls in text": {"a\0b": "\0", "c": b"\0"},
}


@pytest.fixture
def store(place):
    """A store that knows one class, with one run that has a checkpoint."""
    store = place.open(registry=REGISTRY)
    store.save("r", {"n": 1}, workflow="w")
    return store


def everything(store):
    return [(one.run_id, one.digest) for one in store.runs().items]


def refusal(act):
    """What is said when it is refused."""
    with pytest.raises(keepstep.CannotStore) as caught:
        act()
    return str(caught.value)


@everywhere
@pytest.mark.parametrize(("value", "words"), REFUSED.values(), ids=REFUSED)
def test_a_value_without_a_stored_form_is_refused_with_its_path(store, value, words):
    before = everything(store)

    assert refusal(lambda: store.save("r", value)).startswith(words.format("state"))
    assert refusal(lambda: store.save("new", value, workflow="w")).startswith(words.format("state"))
    assert refusal(lambda: store.note("r", value)).startswith(words.format("note"))
    assert refusal(lambda: store.fork("r", edits=lambda state: value)).startswith(words.format("state"))

    assert everything(store) == before
    assert store.load("r").state == {"n": 1}


@everywhere
@pytest.mark.parametrize(("value", "words"), REFUSED.values(), ids=REFUSED)
def test_a_run_goes_on_after_a_value_was_refused(store, value, words):
    with store.run("r") as run:
        before = everything(store)
        assert refusal(lambda: run.save(value)).startswith(words.format("state"))
        assert refusal(lambda: run.note(value)).startswith(words.format("note"))
        assert refusal(lambda: run.finish(value)).startswith(words.format("result"))
        assert everything(store) == before

        assert run.is_open
        assert run.save({"n": 2}) == 2
        run.finish("done")

    assert store.look("r").result == "done"
    assert store.verify("r").ok


@everywhere
def test_an_edit_without_a_stored_form_names_its_key(store):
    said = refusal(lambda: store.fork("r", edits={"client": [HttpClient()]}, id="copy"))

    assert said.startswith('state["client"][0] is an HttpClient')
    assert [one.run_id for one in store.runs().items] == ["r"]


@everywhere
@pytest.mark.parametrize("value", [HttpClient(), [1], {"a": 1}, b"x", 1j, ("a",)], ids=lambda one: type(one).__name__)
def test_a_tag_of_a_type_that_cannot_be_searched_for_is_refused_by_name(store, value):
    with pytest.raises(keepstep.BadInput, match=f"'mark' is a {type(value).__name__}; tags are text, numbers"):
        store.tag("r", mark=value)

    assert store.look("r").tags == {}


@everywhere
@pytest.mark.parametrize("value", KEPT.values(), ids=KEPT)
def test_a_value_that_is_only_odd_comes_back_as_it_was(store, value):
    store.save("r", value)
    store.note("r", value)
    with store.run("r") as run:
        assert run.state == value
        run.save({"wrapped": value})
        run.finish(value)

    look = store.look("r")
    assert look.result == look.note == store.at("r", step=2).state == value
    assert look.state == {"wrapped": value}


@everywhere
def test_nan_comes_back_as_nan(store):
    store.save("r", {"x": math.nan, "y": [math.nan]})

    found = store.load("r").state
    assert math.isnan(found["x"])
    assert math.isnan(found["y"][0])


@everywhere
def test_signs_and_types_of_numbers_come_back(store):
    store.save("r", [-0.0, True, 1, 1.0, False, 0])

    assert str(store.load("r").state) == "[-0.0, True, 1, 1.0, False, 0]"


@everywhere
@pytest.mark.parametrize("step", [-1, 0, 2, 1 << 53, 1 << 64, 10**5000], ids=lambda step: f"{min(step, 10**20)}")
def test_a_step_of_any_size_is_looked_for(store, step):
    with pytest.raises(keepstep.NoSuchCheckpoint, match="'r'"):
        store.at("r", step=step)
    with pytest.raises(keepstep.NoSuchCheckpoint, match="'r'"):
        store.fork("r", step)
    with pytest.raises(keepstep.NoSuchCheckpoint, match="not a checkpoint"):
        store.at("r", seq=1 if step == 2 else step)


@everywhere
def test_a_state_over_the_limit_forks_nothing(place):
    store = place.open(limits=keepstep.Limits(state_bytes=1000))
    store.save("r", {"n": 1}, workflow="w")
    before = everything(store)

    for act in (
        lambda: store.fork("r", edits={"text": "x" * 2000}),
        lambda: store.save("r", {"text": "x" * 2000}),
        lambda: store.save("new", "x" * 2000, workflow="w"),
    ):
        with pytest.raises(keepstep.TooLarge, match=r"the limit is 1,000.*state_bytes"):
            act()

    assert everything(store) == before
