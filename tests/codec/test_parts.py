import pytest
from codec_classes import REGISTRY, Color, Message, Order, Pair, Point, same
from hypothesis import given, settings
from hypothesis import strategies as st

from keepstep.codec.parts import join, split
from keepstep.codec.registry import Registry, Unknown
from keepstep.errors import CannotStore


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"a": 1, "": 2},
        {"b": (1,), "a": {1}},
        {1: 2},
        {"\ud800": 1},
        {"a": 1, 2: 3},
        [1],
        None,
        5,
        Color.RED,
        (1, {"a": 2}),
        Message("user", [1]),
        Point(1, 2),
        Pair(1),
        Order.model_validate({"number": 1, "more": 2}),
    ],
    ids=ascii,
)
def test_a_state_is_cut_and_joined(state):
    parts = split(state, REGISTRY)
    assert same(join(parts, REGISTRY), state)
    assert parts.size == sum(map(len, parts.items.values()))


def test_a_dict_with_text_keys_and_an_instance_are_cut():
    assert list(split({"b": 1, "a": 2}, REGISTRY).items) == ["b", "a"]
    typed = split(Message("user"), REGISTRY)
    assert (list(typed.items), typed.whole, typed.tag) == (
        ["role", "content", "parts"],
        False,
        REGISTRY.tag_of(Message),
    )
    assert split([1], REGISTRY).whole


def test_an_unknown_state_is_written_back_as_it_was():
    parts = split(Message("user", Color.RED), REGISTRY)
    strange = join(parts, Registry())
    assert isinstance(strange, Unknown)
    assert split(strange, Registry()) == parts


def test_equal_pieces_are_the_same_objects():
    old = split({"a": ["x" * 100], "b": 1}, REGISTRY)
    new = split({"a": ["x" * 100], "b": 2}, REGISTRY, old)
    assert new.items["a"] is old.items["a"]
    assert new.items["b"] != old.items["b"]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"a": [object()]}, 'state["a"][0] is an object'),
        (Message("u", object()), "state.content is an object"),
        ([object()], "state[0] is"),
    ],
)
def test_a_refusal_names_the_path(state, words):
    with pytest.raises(CannotStore) as caught:
        split(state, REGISTRY)
    assert words in str(caught.value)


PIECES = st.sampled_from(
    [b"", b"xy", bytearray(b""), bytearray(b"xy"), "xy", "\xc4" * 9, "z" * 0xC4, 0.1, (bytearray(b"q"),), 7]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(PIECES, max_size=12), min_size=2, max_size=4))
def test_a_bytearray_stays_one_whatever_was_there_before(states):
    parts = None
    for state in states:
        padded = {"a": ["pad" * 30, *state, "pad" * 30]}
        parts = split(padded, REGISTRY, parts)
        assert same(join(parts, REGISTRY), padded)
