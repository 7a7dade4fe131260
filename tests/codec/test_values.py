# ruff: noqa: DTZ001, DTZ901  # naive moments are kept as well
import collections
import enum
import math
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import ormsgpack
import pytest
from codec_classes import REGISTRY, VALUES, Coin, Color, Late, Level, Message, Order, Pair, Point, Right, Word, same
from hypothesis import given, settings
from hypothesis import strategies as st

from keepstep.codec.registry import Registry, Unknown
from keepstep.codec.values import decode, encode
from keepstep.errors import CannotStore, Damaged, KeepstepError, StateMismatch


class HttpClient:
    pass


def there_and_back(value):
    return decode(encode(value, REGISTRY), REGISTRY)


EXACT = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**63),
    -(2**63) - 1,
    10**50,
    -(10**50),
    255,
    -256,
    0.0,
    -0.0,
    1e308,
    math.inf,
    -math.inf,
    math.nan,
    "",
    "ä€😀",
    "\ud800",
    "a\udfffb",
    b"",
    b"\xc4\x01",
    bytearray(b"xyz"),
    [bytearray(b"")],
    (bytearray(b"a"), b"a"),
    {"a": {"b": bytearray(b"c")}},
    [],
    (),
    (1,),
    ((),),
    [(), [()]],
    {},
    {"a": 1},
    {1: 2},
    {(1, "a"): [None]},
    {None: 1, True: 2, 1.5: 3, "a": 4},
    {"\ud800": 1},
    {b"k": 1},
    {"b": 1, "a": 2},
    {frozenset({1}): 1},
    set(),
    {1, "a", (2,)},
    frozenset({frozenset()}),
    datetime(2024, 2, 29, 1, 2, 3, 4),
    datetime(1, 1, 1),
    datetime.max,
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-5, minutes=-30, microseconds=7))),
    datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    date(2024, 2, 29),
    time(23, 59, fold=1),
    time(1, 2, 3, 4, tzinfo=timezone(timedelta(hours=1), "CET")),
    timedelta(-1, 5, 7),
    timedelta.max,
    Decimal("1.10"),
    Decimal("-0"),
    Decimal("1E+5"),
    Decimal("Infinity"),
    UUID(int=5),
    Path("/a/b"),
    Path(),
    PurePosixPath("a"),
    PureWindowsPath("c:\\a"),
    Path("/bad\udcff"),
    Color.BLUE,
    Level.HIGH,
    Word.YES,
    Right.READ,
    Right.READ | Right.WRITE,
    Right(0),
    {Color.RED: {Level.LOW}},
    Message("user", ("t", {1: bytearray(b"x")})),
    Point(1, 2),
    Pair(1, (2,)),
    Pair(1, extra=5),
    Coin(3, "x"),
    {Point(1): [Point(3, 4)]},
]


@pytest.mark.parametrize("value", EXACT, ids=lambda value: ascii(value)[:40])
def test_a_value_reads_back_exactly(value):
    got = there_and_back(value)
    assert same(value, got)
    assert same([[value]], there_and_back([[value]]))
    if isinstance(value, float):
        assert math.copysign(1, value) == math.copysign(1, got)


def test_the_zone_the_fold_and_the_name_of_a_zone_are_kept():
    moment = there_and_back(datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")))
    assert (moment.fold, moment.tzinfo) == (1, ZoneInfo("Europe/Berlin"))
    assert there_and_back(datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1), "CET"))).tzname() == "CET"
    assert there_and_back(datetime(2024, 1, 1, tzinfo=UTC)).tzinfo is UTC
    assert there_and_back(Decimal("sNaN123")).compare_total(Decimal("sNaN123")) == 0


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_any_value_reads_back_exactly(value):
    assert same(value, there_and_back(value))


def test_equal_sets_have_equal_bytes_whatever_happened_to_them():
    one, two = {8, 16, 0}, {0}
    two |= {16}
    two |= {8}
    assert encode(one, REGISTRY) == encode(two, REGISTRY)


def test_memory_is_read_as_well():
    assert decode(memoryview(encode([1, "a"], REGISTRY)), REGISTRY) == [1, "a"]


class Text(str):
    __slots__ = ()


class Spot(NamedTuple):
    x: int


class Odd(tzinfo):
    pass


class Secret(enum.Enum):
    KEY = 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"messages": [1, 2, 3, Message("a", HttpClient())]},
            'state["messages"][3].content is an HttpClient, which cannot be stored; register it or leave it out',
        ),
        ({"a": {1: HttpClient()}}, 'state["a"][1] is an HttpClient'),
        ({"a": ({"b": [object()]},)}, 'state["a"][0]["b"][0] is an object'),
        ({"s": {2j}}, 'state["s"]{...} is a complex'),
        ({"s": Pair(1, object())}, 'state["s"].right is an object'),
        ([Text("x")], "state[0] is a Text, which would read back as str; convert it with str(...)"),
        ([collections.OrderedDict(a=1)], "state[0] is an OrderedDict, which would read back as dict"),
        ([Spot(1)], "state[0] is a Spot, which would read back as tuple"),
        ({Text("k"): 1}, "(the key <Text>)"),
        ([Secret.KEY], "state[0] is a Secret, which cannot be stored; register it"),
        ([memoryview(b"x")], "state[0] is a memoryview"),
        ([ValueError("x")], "state[0] is a ValueError"),
        ([HttpClient], "state[0] is a type"),
        ([lambda: 1], "state[0] is a function"),
        (
            {"t": datetime(2024, 1, 1, tzinfo=Odd())},
            'state["t"] has a zone of the type Odd',
        ),
    ],
    ids=lambda one: str(one)[:30],
)
def test_what_cannot_be_kept_is_refused_with_its_path(value, words):
    with pytest.raises(CannotStore) as caught:
        encode(value, REGISTRY)
    assert words in str(caught.value)


def nested(depth, wrap):
    value = None
    for _ in range(depth):
        value = wrap(value)
    return value


WRAPS = [
    lambda v: [v],
    lambda v: {"a": v},
    lambda v: (v,),
    lambda v: {1: v},
    lambda v: Message("m", v),
    lambda v: Unknown("t", {"a": v}),
]


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_circle_is_refused(wrap):
    inner = []
    inner.append(wrap(inner))
    with pytest.raises(CannotStore, match="contains itself"):
        encode(inner, REGISTRY)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("depth", [260, 2000])
def test_what_is_nested_too_deeply_is_refused(wrap, depth):
    with pytest.raises(CannotStore, match="nested too deeply"):
        encode(nested(depth, wrap), REGISTRY)


@pytest.mark.parametrize("wrap", WRAPS)
def test_what_is_nested_not_too_deeply_reads_back(wrap):
    value = nested(48, wrap)
    assert encode(there_and_back(value), REGISTRY) == encode(value, REGISTRY)


def test_unknown_tags_read_as_unknown_and_are_written_back_as_they_were():
    value = [Message("user", [Color.RED, Right.READ]), Pair(1), {Color.RED, Level.LOW}, {Point(1): Order(number=1)}]
    data = encode(value, REGISTRY)
    strange = decode(data, Registry())
    assert strange[0].tag.endswith("Message")
    assert strange[0].value["content"] == [
        Unknown(f"{Color.__module__}.Color", "RED"),
        Unknown(f"{Right.__module__}.Right", 1),
    ]
    assert encode(strange, Registry()) == data


def test_a_class_that_lost_a_field_or_got_one_reads_what_was_stored():
    from dataclasses import make_dataclass

    data = encode(Message("user", 1), REGISTRY)
    name = REGISTRY.tag_of(Message)
    now = Registry()
    now.register(make_dataclass("Now", [("role", str), ("mood", str, "calm")]), name)
    got = decode(data, now)
    assert (got.role, got.mood, hasattr(got, "content")) == ("user", "calm", False)
    strict = Registry()
    strict.register(make_dataclass("Strict", [("must", str)]), name)
    with pytest.raises(StateMismatch, match="'must' is neither stored nor has it a default"):
        decode(data, strict)


def test_a_field_that_was_never_set_stays_so():
    assert not hasattr(there_and_back(Late()), "value")


def test_no_constructor_runs_for_a_dataclass():
    point = Point(1, 2)
    object.__setattr__(point, "sum", 99)
    assert there_and_back(point).sum == 99


def test_a_model_keeps_extra_private_and_what_was_set():
    order = Order(number=5, other={"a": (1,)})  # pyright: ignore[reportCallIssue]
    order._memo = "kept"
    got = there_and_back(order)
    assert got == order
    assert (got._memo, got.other, got.model_fields_set) == ("kept", {"a": (1,)}, order.model_fields_set)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_an_error_of_ours(data):
    with suppress(KeepstepError):
        decode(data, REGISTRY)


def test_every_flipped_byte_gives_a_value_or_an_error_of_ours():
    data = encode([v for v in EXACT if not isinstance(v, float)] + [Order(number=1)], REGISTRY)
    for index in range(len(data)):
        for flip in (1, 0x80, 0xFF):
            with suppress(KeepstepError):
                decode(data[:index] + bytes([data[index] ^ flip]) + data[index + 1 :], REGISTRY)


def test_an_extension_that_is_not_ours_is_damage():
    for data in (ormsgpack.packb(ormsgpack.Ext(99, b"\xc0")), b"", b"\x93\x01"):
        with pytest.raises(Damaged):
            decode(data, REGISTRY)


def test_uuid_is_the_same():
    value = uuid4()
    assert there_and_back(value) == value
