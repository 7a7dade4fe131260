"""Classes of every kind that can be registered, for the tests."""

import dataclasses
import enum
from dataclasses import dataclass, field
from math import isnan
from typing import Annotated, Literal

import attrs
import msgspec
import pydantic
from hypothesis import strategies as st

from keepstep.codec.registry import Registry

REGISTRY = Registry()


@REGISTRY.register
class Color(enum.Enum):
    RED = "r"
    BLUE = object()  # a value that could not be stored itself


@REGISTRY.register
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@REGISTRY.register
class Word(enum.StrEnum):
    YES = "yes"


@REGISTRY.register
class Right(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


@REGISTRY.register
@dataclass
class Message:
    role: str
    content: object = None
    parts: list = field(default_factory=list)


@REGISTRY.register
@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    sum: int = field(init=False, default=0)

    def __post_init__(self):
        object.__setattr__(self, "sum", self.x + self.y)


@REGISTRY.register
@dataclass
class Late:
    value: int = field(init=False)


@REGISTRY.register
class Pair(msgspec.Struct, frozen=True):
    left: int
    right: object = None
    extra: int | msgspec.UnsetType = msgspec.UNSET


@REGISTRY.register
@attrs.frozen
class Coin:
    value: int
    _secret: str = "s"
    notes: list = attrs.Factory(list)


@REGISTRY.register
class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    number: int
    lines: list[str] = []
    _memo: str = pydantic.PrivateAttr(default="m")


@dataclass
class Leaf:
    kind: Literal[Level.LOW] | None = None


class Twig(msgspec.Struct):
    leaves: dict[str, list[Leaf]] = {}


@attrs.define
class Branch:
    twig: Annotated[Twig | None, "note"] = None


class Tree(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    branches: tuple[Branch, ...] = ()
    color: Color = Color.RED


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.binary(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.uuids(),
    st.sampled_from([Color.RED, Level.LOW, Right.READ]),
    st.builds(bytearray, st.binary(max_size=4)),
)
KEYS = st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.tuples(st.integers(), st.text()))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(), inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=3),
        st.builds(tuple, st.lists(inner, max_size=3)),
        st.sets(KEYS, max_size=3),
        st.frozensets(KEYS, max_size=3),
        st.builds(Message, st.text(), inner),
        st.builds(Pair, st.integers(), inner),
    ),
    max_leaves=12,
)


def same(one, two):
    """Equal, and of the same types all the way down, in the same order."""
    if type(one) is not type(two):
        return False
    if isinstance(one, float):
        return one == two or (isnan(one) and isnan(two))
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return same(list(one.items()), list(two.items()))
    if isinstance(one, (set, frozenset)):
        return len(one) == len(two) and same(sorted(one, key=_order), sorted(two, key=_order))
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(two, f.name)) for f in dataclasses.fields(one))
    if isinstance(one, msgspec.Struct):
        return all(same(getattr(one, name), getattr(two, name)) for name in one.__struct_fields__)
    return one == two and getattr(one, "tzinfo", None) == getattr(two, "tzinfo", None)


def _order(one):
    return type(one).__name__, repr(one)
