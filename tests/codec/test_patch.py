import random

import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepstep.codec.patch import apply_splices, splices_between
from keepstep.errors import Damaged


def cost(old, new):
    splices = splices_between(old, new)
    if splices is None:
        return len(new)
    part = bytearray(old)
    apply_splices(part, splices)
    assert part == new
    return len(ormsgpack.packb(splices))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_patch_of_any_bytes_gives_the_new_ones(old, new):
    cost(old, new)


EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 90), st.binary(max_size=90)), max_size=8)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 5), st.integers(100, 6000), EDITS)
def test_a_patch_of_edited_bytes_gives_the_edited_ones(seed, size, edits):
    old = random.Random(seed).choices(b"abcdefgh", k=size) if seed else b"ab" * (size // 2)
    new = bytearray(old)
    for where, delete, insert in edits:
        at = int(where * len(new))
        new[at : at + delete] = insert
    cost(bytes(old), bytes(new))


WORDS = random.Random(4)


def message(number):
    return {"role": "user", "n": number, "text": " ".join(f"w{WORDS.getrandbits(24):x}" for _ in range(12))}


def edits(size):
    base = [message(number) if size < 1000 else number * 7919 for number in range(size)]
    new = message(-1)
    middle = size // 2
    yield "append", base, [*base, new]
    yield "insert at the front", base, [new, *base]
    yield "delete from the middle", base, base[:middle] + base[middle + 1 :]
    yield "change one", base, [*base[:middle], new, *base[middle + 1 :]]
    yield "append and drop the first", base, [*base[1:], new]


SIZES = [14, 15, 16, 17, 200, 65534, 65535, 65536]
SHAPES = [
    lambda v: v,
    lambda v: {"a": 1, "deep": {"list": v, "after": "x"}},
    lambda v: [[{"a": [v]}]],
    lambda v: {"t": ormsgpack.Ext(1, ormsgpack.packb([v, 5]))},
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_edit_costs_in_proportion_to_the_change(size, shape):
    for name, old, new in edits(size):
        spent = cost(ormsgpack.packb(shape(old)), ormsgpack.packb(shape(new)))
        change = len(ormsgpack.packb(message(0)))
        assert spent <= 2 * change + 120, name


@pytest.mark.parametrize("size", SIZES)
def test_an_append_beside_a_changed_scalar_costs_in_proportion(size):
    base = [message(number) if size < 1000 else number * 7919 for number in range(size)]
    for order in (lambda n, v: {"n": n, "list": v, "z": 0.5}, lambda n, v: {"list": v, "n": n, "z": 0.5}):
        old, new = order(7, base), order(70000, [*base, message(-1)])
        assert cost(ormsgpack.packb(old), ormsgpack.packb(new)) < 400


def test_one_nested_field_costs_a_few_bytes():
    old = {"messages": [message(n) for n in range(300)], "meta": {"a": {"count": 1, "name": "x" * 50}}}
    new = {**old, "meta": {"a": {"count": 2, "name": "x" * 50}}}
    assert cost(ormsgpack.packb(old), ormsgpack.packb(new)) < 30


def test_a_patch_that_is_not_smaller_is_none():
    noise = random.Random(1)
    assert splices_between(noise.randbytes(5000), noise.randbytes(5000)) is None


@pytest.mark.parametrize(
    "splices", [[1], [0, 9, b""], [-1, 0, b""], [0, -1, b""], ["a", 0, b""], [0, 0, 5], [50, 0, b"x"]]
)
def test_a_patch_that_does_not_fit_is_damage(splices):
    with pytest.raises(Damaged):
        apply_splices(bytearray(b"abc"), splices)
