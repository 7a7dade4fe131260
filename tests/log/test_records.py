"""Records: every kind comes back as it was, its stored form is pinned, and what is no record is refused by name."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from keepstep.errors import Damaged, NewerFormat
from keepstep.log.records import HEAD_VERSION, KINDS, Noted, Record, Saved, decode_head, encode_head
from tests.log.record_examples import EXAMPLES
from tests.log.record_golden import GOLDEN

MAGIC = b"\x4b\x01"


def field_values(kind: str) -> list[Any]:
    """The example's fields as they stand in its head, the kind first."""
    return msgspec.msgpack.decode(encode_head(EXAMPLES[kind])[2:])


def head_of(values: list[Any]) -> bytes:
    return MAGIC + msgspec.msgpack.encode(values)


def test_there_is_an_example_and_a_pinned_form_of_every_kind():
    assert set(EXAMPLES) == set(KINDS) == set(GOLDEN)


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_sets_every_field_to_something_else_than_its_default(kind: str):
    fields = msgspec.structs.fields(KINDS[kind])
    left_out = [one.name for one in fields if getattr(EXAMPLES[kind], one.name) == one.default]
    assert left_out == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_stored_form_of_every_kind_is_pinned_to_the_byte(kind: str):
    assert encode_head(EXAMPLES[kind]).hex() == GOLDEN[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_as_it_was_written(kind: str):
    record = decode_head(bytes.fromhex(GOLDEN[kind]))
    assert type(record) is KINDS[kind]
    assert record == EXAMPLES[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_with_nothing_but_its_required_fields(kind: str):
    fields = msgspec.structs.fields(KINDS[kind])
    required = {one.name: getattr(EXAMPLES[kind], one.name) for one in fields if one.required}
    bare = KINDS[kind](**required)
    assert decode_head(encode_head(bare)) == bare


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_from_before_a_field_was_added_reads_with_its_default(kind: str):
    fields = msgspec.structs.fields(KINDS[kind])
    needed = 1 + max((place for place, one in enumerate(fields, 1) if one.required), default=6)
    older = decode_head(head_of(field_values(kind)[:needed]))
    for one in fields[needed - 1 :]:
        assert getattr(older, one.name) == (one.default if one.default_factory is msgspec.NODEFAULT else [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_a_newer_keepstep_added_is_passed_over(kind: str):
    assert decode_head(head_of([*field_values(kind), "new", {"of": [1]}])) == EXAMPLES[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_of_a_wrong_type_is_damage(kind: str):
    values = field_values(kind)
    for place in range(1, len(values)):
        wrong = [*values[:place], {"of": "a wrong type"}, *values[place + 1 :]]
        if msgspec.structs.fields(KINDS[kind])[place - 1].name == "tags":
            wrong[place] = [1]
        with pytest.raises(Damaged, match="cannot be read"):
            decode_head(head_of(wrong))


def test_an_unknown_kind_is_damage_that_names_it():
    with pytest.raises(Damaged, match="imagined"):
        decode_head(head_of(["imagined", *field_values("noted")[1:]]))


def test_a_newer_version_is_told_from_damage():
    head = bytes((MAGIC[0], HEAD_VERSION + 1)) + encode_head(EXAMPLES["noted"])[2:]
    with pytest.raises(NewerFormat, match="upgrade"):
        decode_head(head)


@pytest.mark.parametrize("head", [b"", b"\x4b", b"\x4b\x00", b"\x00\x01", MAGIC, b"ks\x10\x00", MAGIC + b"\x90"])
def test_what_does_not_begin_as_heads_do_is_damage(head: bytes):
    with pytest.raises(Damaged):
        decode_head(head)


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_is_cut_off_anywhere_is_damage(kind: str):
    head = encode_head(EXAMPLES[kind])
    for length in range(len(head)):
        with pytest.raises(Damaged):
            decode_head(head[:length])


def test_bytes_behind_a_head_are_damage():
    with pytest.raises(Damaged):
        decode_head(encode_head(EXAMPLES["noted"]) + b"\x00")


def test_a_head_nested_without_end_is_damage():
    packed = msgspec.msgpack.encode(field_values("noted"))
    head = MAGIC + bytes((packed[0] + 1,)) + packed[1:] + b"\x91" * 200_000 + b"\xc0"
    with pytest.raises(Damaged):
        decode_head(head)


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else_than_damage(data: bytes):
    for head in (data, MAGIC + data):
        with suppress(Damaged, NewerFormat):
            assert isinstance(decode_head(head), Record)


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_a_head_with_one_byte_changed_is_damage_or_another_record(kind: str, data: st.DataObject):
    head = bytearray(encode_head(EXAMPLES[kind]))
    place = data.draw(st.integers(0, len(head) - 1))
    head[place] ^= data.draw(st.integers(1, 255))
    try:
        record = decode_head(bytes(head))
    except (Damaged, NewerFormat):
        return
    # What the damage left readable is caught by the chain; here it only must not read as the record it was.
    assert record != EXAMPLES[kind] or encode_head(record) != bytes(head)


TEXT = st.text(max_size=12)
FIELDS = {
    int: st.integers(0, (1 << 63) - 1),
    str: TEXT,
    bool: st.booleans(),
    bytes: st.binary(max_size=16),
    bytes | None: st.none() | st.binary(max_size=16),
    str | None: st.none() | TEXT,
    int | None: st.none() | st.integers(0, (1 << 63) - 1),
    list[int]: st.lists(st.integers(0, 1 << 31), max_size=4),
    list[tuple[int, int]]: st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3),
    list[tuple[int, int, int]]: st.lists(st.tuples(*[st.integers(0, 9)] * 3), max_size=3),
    list[tuple[int, bytes, int, int, list[int]]]: st.just([(3, b"d" * 16, 5, 1, [1, 2])]),
    dict[str, str | int | float | bool | None]: st.dictionaries(
        TEXT, st.none() | st.booleans() | TEXT | st.floats(allow_nan=False) | st.integers(-(1 << 63), (1 << 63) - 1)
    ),
}


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_any_record_is_read_as_it_was_written(kind: str, data: st.DataObject):
    values = {one.name: data.draw(FIELDS[one.type]) for one in msgspec.structs.fields(KINDS[kind])}
    record = KINDS[kind](**values)
    again = decode_head(encode_head(record))
    assert again == record
    assert encode_head(again) == encode_head(record)


def test_numbers_that_only_look_equal_stay_what_they_are():
    tags = {"int": 1, "float": 1.0, "bool": True}
    again = decode_head(encode_head(replace(EXAMPLES["tagged"], tags=tags)))
    assert {name: type(value) for name, value in again.tags.items()} == {"int": int, "float": float, "bool": bool}  # pyright: ignore[reportAttributeAccessIssue]


def test_records_cannot_be_changed():
    with pytest.raises(AttributeError):
        Noted(namespace="progress").seq = 5  # pyright: ignore[reportAttributeAccessIssue]


def test_two_records_do_not_share_their_lists():
    assert Saved(step=1).bases is not Saved(step=1).bases
