import math

from codec_classes import REGISTRY, VALUES, Coin, Message, Order, Pair
from hypothesis import given, settings

from keepstep.codec.difference import Change, difference, weigh
from keepstep.codec.parts import split
from keepstep.codec.registry import Unknown


def test_paths_kinds_and_values():
    old = {"messages": [{"text": "a"}, {"text": "b"}], "odd key": 1, "gone": 2}
    new = {"messages": [{"text": "a"}, {"text": "c"}], "odd key": 2, "fresh": 3}
    assert difference(old, new) == [
        Change("gone", "removed", old=2),
        Change("messages[1].text", "changed", "b", "c"),
        Change('["odd key"]', "changed", 1, 2),
        Change("fresh", "added", new=3),
    ]


def test_an_insertion_in_a_list_is_one_addition():
    assert difference([1, 2, 3], [1, 9, 2, 3]) == [Change("[1]", "added", new=9)]
    assert difference([1, 2, 3], [1, 3]) == [Change("[1]", "removed", old=2)]
    assert difference({"a": [1]}, {"a": [1, 2]}) == [Change("a[1]", "added", new=2)]


def test_instances_are_compared_by_field():
    assert difference(Message("a"), Message("b")) == [Change("role", "changed", "a", "b")]
    assert difference([Pair(1)], [Pair(2)]) == [Change("[0].left", "changed", 1, 2)]
    assert difference([Coin(1)], [Coin(2)]) == [Change("[0].value", "changed", 1, 2)]
    assert difference(Order(number=1), Order(number=2)) == [Change("number", "changed", 1, 2)]
    assert difference(Unknown("t", {"a": 1}), Unknown("t", {"a": 2})) == [Change("a", "changed", 1, 2)]
    assert difference(Unknown("t", {"a": 1}), Unknown("u", {"a": 1}))[0].path == ""


def test_nan_is_nan_and_true_is_not_one():
    assert difference({"a": math.nan}, {"a": float("nan")}) == []
    assert [change.kind for change in difference({"a": 1}, {"a": True})] == ["changed"]
    assert [change.kind for change in difference([{1: 0}], [{True: 0}])] == ["removed", "added"]
    assert difference({"a": 1}, {"a": 1.0})[0].kind == "changed"
    assert difference((1,), [1])[0].path == ""


def test_a_difference_deep_down_is_found_at_once():
    def deep(value):
        for _ in range(150):
            value = [value, 0]
        return value

    assert [change.path for change in difference(deep(1), deep(2))] == ["[0]" * 150]


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_a_value_does_not_differ_from_itself_read_back(value):
    from keepstep.codec.values import decode, encode

    assert difference(value, decode(encode(value, REGISTRY), REGISTRY)) == []


def test_the_heaviest_key_comes_first():
    assert list(weigh(split({"a": 1, "b": "x" * 50, "c": "yy"}, REGISTRY)).items()) == [("b", 52), ("c", 3), ("a", 1)]
