"""Typed answers: what is asked for, what is stored of it, and what the code gets back."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from enum import Enum, Flag, IntEnum, auto
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import annotated_types
import attrs
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from msgspec import field as struct_field
from typing_extensions import TypeAliasType

from keepstep.engine.fields import Form, form, read_text, validate
from keepstep.errors import BadInput, InvalidAnswer

Amount = TypeAliasType("Amount", Annotated[int, Meta(ge=1)])


class Colour(Enum):
    RED = "r"
    GREEN = "g"
    CRIMSON = "r"  # noqa: PIE796 - an alias


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Item(Struct):
    name: str
    price: Annotated[float, Meta(ge=0)]


class Order(Struct):
    items: Annotated[list[Item], Meta(min_length=1)]
    colour: Colour = Colour.GREEN
    note: str | None = None
    tags: list[str] = struct_field(default_factory=list)


@dataclass
class Approval:
    approve: bool
    amount: Annotated[int, Meta(ge=1, le=500)]
    until: date | None
    reason: str = "none given"
    stamp: float = field(default_factory=lambda: 1.5)
    made: bool = field(init=False, default=True)


class Payment(pydantic.BaseModel):
    amount: int = pydantic.Field(gt=0, title="Amount in cents", description="Before tax")
    to: str = pydantic.Field(alias="recipient", max_length=10)
    colour: Colour | None = None
    level: Annotated[Level, pydantic.Field(title="How urgent")] = Level.LOW

    @pydantic.field_validator("to")
    @classmethod
    def nobody(cls, to: str) -> str:
        if to == "nobody":
            raise ValueError("nobody cannot be paid")
        return to.title()


@pydantic.dataclasses.dataclass
class Transfer:
    amount: int = pydantic.Field(default=3, ge=1)


class Nested(Struct):
    order: Order
    approvals: list[Approval]
    payment: Payment | None = None


def problems(schema: Mapping[str, Any], answer: Any) -> Mapping[str, str]:
    with pytest.raises(InvalidAnswer) as caught:
        validate(schema, answer)
    return caught.value.problems


def problem(asked: Any, answer: Any) -> str:
    """The problem with an answer that is one value."""
    found = problems(form(asked).schema, answer)
    assert list(found) == [""]
    return found[""]


APPROVE = {"approve": bool, "note": str | None}


# --- what is stored --------------------------------------------------------------------------------------------------


def test_a_schema_says_all_that_is_needed_to_draw_it():
    asked = {"approve": bool, "unit_price": Annotated[float, Meta(ge=0, title="Price", description="each")]}

    assert form(asked | {"note": str | None}).schema == {
        "type": "object",
        "properties": {
            "approve": {"title": "Approve", "type": "boolean"},
            "unit_price": {"title": "Price", "description": "each", "type": "number", "minimum": 0},
            "note": {"title": "Note", "anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["approve", "unit_price"],
        "additionalProperties": False,
    }


def test_a_nested_class_stands_inline_and_is_titled_by_its_field():
    schema = form({"best_order": Order}).schema["properties"]["best_order"]

    assert schema["title"] == "Best order"
    assert schema["required"] == ["items"]
    assert schema["properties"] == {
        "items": {
            "title": "Items",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"title": "Name", "type": "string"},
                    "price": {"title": "Price", "type": "number", "minimum": 0},
                },
                "required": ["name", "price"],
                "additionalProperties": False,
            },
            "minItems": 1,
        },
        "colour": {
            "title": "Colour",
            "enum": ["r", "g"],
            "x-names": {"RED": "r", "GREEN": "g", "CRIMSON": "r"},
            "default": "g",
        },
        "note": {"title": "Note", "anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "tags": {"title": "Tags", "type": "array", "items": {"type": "string"}, "default": []},
    }


def test_fields_are_named_as_in_the_code_whatever_they_are_renamed_to():
    class Renamed(Struct, rename="camel", tag=True):
        unit_price: int

    asked = form(Renamed)

    assert list(asked.schema["properties"]) == ["unit_price"]
    assert asked.convert(validate(asked.schema, Renamed(3))) == Renamed(3)


def test_properties_stand_in_the_order_they_are_asked_in():
    assert list(form({"z": int, "a": int, "m": int}).schema["properties"]) == ["z", "a", "m"]
    assert list(form(Approval).schema["properties"]) == ["approve", "amount", "until", "reason", "stamp"]


def test_a_default_that_a_function_makes_is_not_stored():
    schema = form(Approval).schema

    assert "default" not in schema["properties"]["stamp"]
    assert schema["properties"]["reason"]["default"] == "none given"
    assert schema["required"] == ["approve", "amount"]


def test_a_default_that_does_not_fit_its_own_field_is_not_stored():
    @dataclass
    class Sloppy:
        note: str = None  # type: ignore[assignment]

    Sloppy.__annotations__["note"] = str
    asked = form(Sloppy)

    assert asked.schema["properties"] == {"note": {"title": "Note", "type": "string"}}
    assert asked.convert(validate(asked.schema, {})) == Sloppy()
    assert problems(asked.schema, {"note": None}) == {"note": "is None; give text"}


@pytest.mark.parametrize("asked", [Order, Approval, Payment, Transfer, Nested, {"a": Nested, "b": list[Order]}, bool])
def test_a_schema_is_plain_json_and_the_same_each_time(asked):
    schema = form(asked).schema

    assert json.loads(json.dumps(schema, allow_nan=False)) == schema
    assert json.dumps(form(asked).schema) == json.dumps(schema)


def test_changing_one_schema_changes_no_other():
    form(bool).schema["title"] = "spoiled"

    assert form(bool).schema == {"type": "boolean"}


def test_without_fields_any_answer_is_taken_as_it_is():
    asked = form(None)

    assert asked.schema == {}
    for answer in (None, "text", 3, {"any": [1, 2.5]}, Colour.RED):
        assert asked.convert(validate(asked.schema, answer)) is answer


def test_one_type_asks_for_one_value():
    asked = form(bool)

    assert asked.schema == {"type": "boolean"}
    assert asked.convert(validate(asked.schema, True)) is True


def test_pydantic_is_not_imported_for_others():
    code = "import sys; from keepstep.engine.fields import form; form({'a': int}); print('pydantic' in sys.modules)"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "False"


# --- what cannot be asked for ----------------------------------------------------------------------------------------


class Combined(Flag):
    A = auto()
    B = auto()


class Nameless(Enum):
    pass


class Tuples(Enum):
    BLACK = (0, 0, 0)


class Endless(Enum):
    MUCH = math.inf


class Tree(Struct):
    children: list[Tree]


class Empty(Struct):
    pass


class Typed(TypedDict):
    a: int


class Named(NamedTuple):
    a: int


@attrs.define
class Attrs:
    a: int


@dataclass
class Lost:
    a: Nowhere  # type: ignore[name-defined] # noqa: F821


@dataclass
class Initial:
    a: InitVar[int]


class Root(pydantic.RootModel[int]):
    pass


class Bounded(dict):
    pass


@pytest.mark.parametrize(
    "asked",
    [
        time,
        bytes,
        complex,
        object,
        Any,
        None,
        type(None),
        "bool",
        3,
        {"a": int},
        dict,
        dict[str, int],
        list,
        list[bytes],
        list[list[time]],
        tuple[int, ...],
        set[int],
        int | str,
        int | str | None,
        Literal[b"a"],
        Literal[None],  # noqa: PYI061 - as people write it
        Combined,
        Nameless,
        Tuples,
        Endless,
        Enum,
        Tree,
        Empty,
        Typed,
        Named,
        Attrs,
        Lost,
        Initial,
        Root,
        Bounded,
    ],
    ids=repr,
)
def test_other_types_are_refused_at_once(asked):
    with pytest.raises(BadInput) as caught:
        form({"good": int, "bad": asked})

    assert not isinstance(caught.value, InvalidAnswer)
    assert "fields= has 'bad" in str(caught.value)


def test_a_refusal_names_the_field_and_what_is_supported():
    with pytest.raises(BadInput, match=r"fields= has 'when': <class 'datetime.time'>.* Give bool, int, float, str"):
        form({"when": time})
    with pytest.raises(BadInput, match=r"fields= is <class 'datetime.time'>"):
        form(time)
    with pytest.raises(BadInput, match=r"'order.children\[\]'.*it holds itself"):
        form({"order": Tree})


@pytest.mark.parametrize("fields", [{}, {3: int}, {"": int}, {None: int}])
def test_fields_need_names(fields):
    with pytest.raises(BadInput, match=r"fields= (is empty|has the name)"):
        form(fields)


@pytest.mark.parametrize(
    "asked",
    [
        Annotated[str, Meta(ge=1)],
        Annotated[bool, Meta(ge=1)],
        Annotated[int, Meta(max_length=1)],
        Annotated[int, annotated_types.Ge(math.inf)],
        Annotated[int, annotated_types.Ge(math.nan)],
        Annotated[date, annotated_types.Ge(date(2026, 1, 1))],
        Annotated[datetime, Meta(tz=True)],
        Annotated[list[int], Meta(pattern="a")],
        Annotated[str, pydantic.Field(pattern="(")],
        Annotated[Colour, Meta(max_length=2)],
        Annotated[Order, Meta(max_length=2)],
        Annotated[int, annotated_types.MultipleOf(0)],
        Annotated[str | None, Meta(ge=1)],
    ],
    ids=repr,
)
def test_a_limit_that_its_type_cannot_have_is_refused(asked):
    with pytest.raises(BadInput, match="fields= limits amount with"):
        form({"amount": asked})


# --- answers that fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answer", "stored", "typed"),
    [
        (bool, False, False, False),
        (int, -3, -3, -3),
        (int, 10**30, 10**30, 10**30),
        (float, 2, 2.0, 2.0),
        (str, "", "", ""),
        (int | None, None, None, None),
        (Optional[int], 3, 3, 3),  # noqa: UP045
        (Literal["a", "b"], "b", "b", "b"),
        (Literal["a", None], None, None, None),  # noqa: PYI061 - as people write it
        (Literal[1, True], True, True, True),
        (Literal[Colour.RED], "RED", "r", Colour.RED),
        (Colour, "g", "g", Colour.GREEN),
        (Colour, "GREEN", "g", Colour.GREEN),
        (Colour, "CRIMSON", "r", Colour.RED),
        (Colour, Colour.RED, "r", Colour.RED),
        (Level, 2, 2, Level.HIGH),
        (Level, "HIGH", 2, Level.HIGH),
        (str, Colour.RED, "r", "r"),
        (date, "2026-05-01", "2026-05-01", date(2026, 5, 1)),
        (date, date(2026, 5, 1), "2026-05-01", date(2026, 5, 1)),
        (datetime, "2026-05-01T10:00", "2026-05-01T10:00:00", datetime(2026, 5, 1, 10)),  # noqa: DTZ001
        (datetime, "2026-05-01 10:00Z", "2026-05-01T10:00:00+00:00", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        (list[int | None], (1, None), [1, None], [1, None]),
        (list[Colour], [], [], []),
        (Annotated[int, Meta(ge=1, lt=3)], 2, 2, 2),
        (Annotated[float, Meta(multiple_of=0.1)], 0.3, 0.3, 0.3),
        (Annotated[int, "just a remark"], 2, 2, 2),
        (Amount, 2, 2, 2),
    ],
)
def test_an_answer_is_stored_plainly_and_comes_back_typed(asked, answer, stored, typed):
    alone, named = form(asked), form({"a": asked})

    assert validate(alone.schema, answer) == stored
    assert validate(named.schema, {"a": answer}) == {"a": stored}
    back = alone.convert(stored)
    assert (type(back), back) == (type(typed), typed)
    assert named.convert({"a": stored}) == {"a": typed}


def test_fields_that_are_left_out_are_none():
    asked = form(APPROVE)

    plain = validate(asked.schema, {"approve": True})

    assert plain == {"approve": True}
    assert asked.convert(plain) == {"approve": True, "note": None}


def test_a_stored_answer_has_the_order_of_the_fields():
    assert list(validate(form({"a": int, "b": int}).schema, {"b": 2, "a": 1})) == ["a", "b"]


def test_a_struct_is_made_with_its_defaults():
    asked = form(Order)

    plain = validate(asked.schema, {"items": [{"name": "tea", "price": 3}]})

    assert plain == {"items": [{"name": "tea", "price": 3.0}]}
    assert asked.convert(plain) == Order([Item("tea", 3.0)])


def test_a_dataclass_is_made_with_its_defaults():
    asked = form(Approval)

    plain = validate(asked.schema, {"approve": True, "amount": 420})

    assert asked.convert(plain) == Approval(approve=True, amount=420, until=None)


def test_a_pydantic_model_is_made_by_its_own_validation():
    asked = form(Payment)

    made = asked.convert(validate(asked.schema, {"amount": 5, "to": "ada", "level": "HIGH"}))

    assert isinstance(made, Payment)
    assert (made.to, made.level, made.colour) == ("Ada", Level.HIGH, None)
    assert asked.schema["properties"]["amount"] == {
        "title": "Amount in cents",
        "description": "Before tax",
        "type": "integer",
        "exclusiveMinimum": 0,
    }
    assert asked.schema["properties"]["level"]["title"] == "How urgent"


def test_a_dataclass_of_pydantic_is_made_too():
    asked = form(Transfer)

    assert asked.schema["properties"]["amount"]["default"] == 3
    assert asked.convert({}) == Transfer()
    assert problems(asked.schema, {"amount": 0}) == {"amount": "is 0; give a whole number, at least 1"}


def test_typed_values_are_taken_for_an_answer():
    asked = form(Nested)
    order = Order([Item("tea", 3.5)], Colour.RED)
    payment = Payment(amount=1, recipient="Ada")
    whole = Nested(order, [Approval(approve=True, amount=1, until=date(2026, 5, 1))], payment)

    plain = validate(asked.schema, whole)

    assert json.loads(json.dumps(plain)) == plain
    assert plain["approvals"][0]["until"] == "2026-05-01"
    assert asked.convert(plain) == whole


# --- answers that do not fit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answer", "message"),
    [
        (bool, "maybe", "is 'maybe'; give true or false"),
        (bool, 1, "is 1; give true or false"),
        (bool, None, "is None; give true or false"),
        (int, True, "is True; give a whole number"),
        (int, 2.0, "is 2.0; give a whole number"),
        (int, "2", "is '2'; give a whole number"),
        (float, False, "is False; give a number"),
        (float, math.nan, "is nan; give a number"),
        (float, math.inf, "is inf; give a number"),
        (str, 3, "is 3; give text"),
        (str, b"a", "is b'a'; give text"),
        (int | None, "x", "is 'x'; give a whole number, or nothing"),
        (Literal["a", "b"], "c", "is 'c'; give one of 'a', 'b'"),
        (Literal[1], True, "is True; give 1"),
        (Literal[1], [1], "is [1]; give 1"),
        (Colour, "blue", "is 'blue'; give one of 'r', 'g'"),
        (date, "tomorrow", "is 'tomorrow'; give a date such as 2026-12-31"),
        (date, 20260501, "is 20260501; give a date such as 2026-12-31"),
        (date, "2026-02-30", "is '2026-02-30'; give a date such as 2026-12-31"),
        (date, "2026-05-01T10:00", "is '2026-05-01T10:00'; give a date such as 2026-12-31"),
        (list[int], "1, 2", "is '1, 2'; give a list, written [..., ...]"),
        (list[int], {1}, "is {1}; give a list, written [..., ...]"),
        (Item, 3, "is 3; give an object with the fields name, price"),
        (Annotated[int, Meta(ge=1, le=9)], 0, "is 0; give a whole number, at least 1 and at most 9"),
        (Annotated[int, Meta(ge=1, le=9)], 10, "is 10; give a whole number, at least 1 and at most 9"),
        (Annotated[float, Meta(gt=0, lt=1)], 0, "is 0; give a number, above 0 and below 1"),
        (Annotated[float, Meta(gt=0, lt=1)], 1.0, "is 1.0; give a number, above 0 and below 1"),
        (Annotated[int, Meta(multiple_of=5)], 7, "is 7; give a whole number, in steps of 5"),
        (Annotated[str, Meta(min_length=1)], "", "is ''; give text of at least 1 character"),
        (Annotated[str, Meta(max_length=2)], "abc", "is 'abc'; give text of at most 2 characters"),
        (Annotated[str, Meta(pattern="^[A-Z]+$")], "abc", "is 'abc'; give text that matches ^[A-Z]+$"),
        (Annotated[str, annotated_types.Len(1, 2)], "",
         "is ''; give text of at least 1 character and at most 2 characters"),
        (Annotated[str | None, Meta(max_length=1)], "abc", "is 'abc'; give text of at most 1 character, or nothing"),
        (Annotated[list[int], Meta(min_length=1)], [], "is []; give a list, written [..., ...] of at least 1 element"),
        (Annotated[list[int], Meta(max_length=1)], [1, 2],
         "is [1, 2]; give a list, written [..., ...] of at most 1 element"),
    ],
)  # fmt: skip
def test_a_problem_says_what_is_wrong_and_what_to_give(asked, answer, message):
    assert problem(asked, answer) == message


def test_a_number_too_large_for_a_float_is_refused():
    assert problem(float, 10**400).endswith("; give a number")


@pytest.mark.parametrize("answer", ["2026-05-01", "20260501", "noon", 5, date(2026, 5, 1)])
def test_a_moment_needs_its_time_of_day(answer):
    assert problem(datetime, answer).endswith("give a date and time such as 2026-12-31T18:30:00+00:00")


def test_a_date_is_no_moment():
    assert problem(date, datetime(2026, 5, 1, tzinfo=UTC)).endswith("give a date such as 2026-12-31")


def test_every_bad_field_is_named_with_its_problem():
    with pytest.raises(InvalidAnswer) as caught:
        validate(form(APPROVE | {"amount": int}).schema, {"approve": "maybe", "colour": 1, 3: 4})

    assert caught.value.problems == {
        "approve": "is 'maybe'; give true or false",
        "amount": "is missing; give a whole number",
        "colour": "is not one of the fields: approve, note, amount",
        "3": "is not one of the fields: approve, note, amount",
    }
    for name, text in caught.value.problems.items():
        assert f"{name} {text}." in str(caught.value)
    assert isinstance(caught.value, BadInput)


def test_a_problem_with_the_whole_answer_has_no_name():
    assert problems(form(APPROVE).schema, True) == {"": "is True; give an object with the fields approve, note"}
    with pytest.raises(InvalidAnswer, match=r"does not fit; nothing was written\. It is True; give an object"):
        validate(form(APPROVE).schema, True)


def test_a_nested_problem_is_named_by_its_path():
    items = [{"name": "a", "price": 1}, {"name": "b", "price": -1}, {"price": 2, "x": 1}]

    assert problems(form({"order": Order}).schema, {"order": {"items": items, "tags": ["a", 2]}}) == {
        "order.items[1].price": "is -1; give a number, at least 0",
        "order.items[2].x": "is not one of the fields: name, price",
        "order.items[2].name": "is missing; give text",
        "order.tags[1]": "is 2; give text",
    }
    assert problems(form(list[list[int]]).schema, [[1], ["a"]]) == {"[1][0]": "is 'a'; give a whole number"}


def test_a_long_answer_is_cut_in_the_message():
    assert len(problem(bool, "x" * 10_000)) < 300


# --- stored answers and changed types --------------------------------------------------------------------------------


def test_a_stored_answer_that_no_longer_fits_is_told_clearly():
    stored = validate(form(APPROVE).schema, {"approve": True})
    changed = form({"approve": bool, "amount": int})

    with pytest.raises(BadInput, match=r"stored answer .* amount is missing; give a whole number") as caught:
        changed.convert(stored)

    assert not isinstance(caught.value, InvalidAnswer)


def test_a_class_that_does_not_accept_an_answer_is_told_clearly():
    asked = form({"payment": Payment})
    stored = validate(asked.schema, {"payment": {"amount": 1, "to": "nobody"}})

    with pytest.raises(BadInput, match=r"(?s)not accepted by Payment: ValidationError: .*nobody cannot be paid"):
        asked.convert(stored)


def test_a_schema_that_was_stored_checks_as_before():
    schema = json.loads(json.dumps(form(Nested).schema))
    answer = {"order": {"items": [{"name": "a", "price": 1}], "colour": "RED"}, "approvals": []}

    assert form(Nested).convert(validate(schema, answer)) == Nested(Order([Item("a", 1.0)], Colour.RED), [])


# --- texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "text", "value"),
    [
        *((bool, text, True) for text in ("yes", "Y", " true ", "1", "on")),
        *((bool, text, False) for text in ("no", "N", "FALSE", "0", "off")),
        (int, " 12 ", 12),
        (int, "-3", -3),
        (float, "12", 12.0),
        (float, "1e3", 1000.0),
        (str, " as it is ", " as it is "),
        (str, "", ""),
        (str, "12", "12"),
        (str | None, "", None),
        (str | None, "text", "text"),
        (int | None, " ", None),
        (int | None, "7", 7),
        (date, "2026-05-01 ", "2026-05-01"),
        (datetime, "2026-05-01T10:00", "2026-05-01T10:00:00"),
        (Colour, "r", "r"),
        (Colour, " GREEN ", "g"),
        (Level, "2", 2),
        (Level, "HIGH", 2),
        (Literal[True, "x"], "yes", True),
        (Literal["1", 1], "1", "1"),
        (Literal[2], "2", 2),
        (list[int], "[1, 2]", [1, 2]),
        (list[int] | None, "", None),
        (Item, '{"name": "a", "price": 1}', {"name": "a", "price": 1.0}),
    ],
)
def test_texts_are_read_by_the_schema(asked, text, value):
    assert read_text(form({"a": asked}).schema, {"a": text}) == {"a": value}
    for one in (text, {"": text}):
        if not (isinstance(one, Mapping) and asked is Item):
            assert read_text(form(asked).schema, one) == value


def test_the_texts_of_a_form_make_an_answer():
    schema = form(Approval).schema

    assert read_text(schema, {"approve": "yes", "amount": "12", "until": "", "reason": "", "stamp": ""}) == {
        "approve": True,
        "amount": 12,
        "until": None,
    }


@pytest.mark.parametrize(
    ("asked", "text", "message"),
    [
        (bool, "maybe", "is 'maybe'; give true or false"),
        (bool, "", "is missing; give true or false"),
        (int, "", "is missing; give a whole number"),
        (int, "twelve", "is 'twelve'; give a whole number"),
        (int, "1.5", "is '1.5'; give a whole number"),
        (int, "9" * 5000, f"is '{'9' * 199}...; give a whole number"),
        (float, "nan", "is nan; give a number"),
        (date, "soon", "is 'soon'; give a date such as 2026-12-31"),
        (Colour, "blue", "is 'blue'; give one of 'r', 'g'"),
        (list[int], "1, 2", "is '1, 2'; give a list, written [..., ...]"),
        (list[int], "[" * 100_000, f"is '{'[' * 199}...; give a list, written [..., ...]"),
        (Item, "{", "is '{'; give an object with the fields name, price"),
    ],
)
def test_texts_that_cannot_be_read_are_problems_like_any_other(asked, text, message):
    with pytest.raises(InvalidAnswer) as caught:
        read_text(form({"a": asked}).schema, {"a": text})

    assert caught.value.problems == {"a": message}


def test_texts_for_other_fields_are_problems():
    with pytest.raises(InvalidAnswer) as caught:
        read_text(form(APPROVE).schema, {"note": "", "colour": "red"})

    assert caught.value.problems == {
        "approve": "is missing; give true or false",
        "colour": "is not one of the fields: approve, note",
    }


def test_named_texts_do_not_fit_a_single_value():
    with pytest.raises(InvalidAnswer) as caught:
        read_text(form(bool).schema, {"approve": "yes"})

    assert caught.value.problems == {"": "is {'approve': 'yes'}; give true or false"}


def test_a_single_value_without_any_text_is_a_problem():
    with pytest.raises(InvalidAnswer, match="It is ''; give true or false"):
        read_text(form(bool).schema, {})


def test_without_fields_texts_stay_texts():
    assert read_text({}, "12") == "12"
    assert read_text({}, {"a": "12"}) == {"a": "12"}


# --- any type, any value ---------------------------------------------------------------------------------------------

MOMENTS = st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30))]))

LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (bool, st.booleans()),
    (int, st.integers()),
    (Annotated[int, Meta(ge=-5, lt=5)], st.integers(-5, 4)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str, st.text()),
    (Annotated[str, Meta(min_length=2, max_length=4)], st.text(min_size=2, max_size=4)),
    (date, st.dates()),
    (datetime, MOMENTS),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Literal["a", 1, True], st.sampled_from(["a", 1, True])),
    (Item, st.builds(Item, st.text(), st.floats(0, 10))),
    (Order, st.builds(Order, st.lists(st.builds(Item, st.text(), st.floats(0, 10)), min_size=1))),
]


def _wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda pair: (pair[0] | None, st.none() | pair[1])),
        inner.map(lambda pair: (list[pair[0]], st.lists(pair[1], max_size=3))),
    )


TYPES = st.recursive(st.sampled_from(LEAVES), _wider, max_leaves=3)
"""Pairs of a type and what makes its values."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["r", "GREEN", "2026-05-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "name", "items"]), inner),
    max_leaves=5,
)


@given(st.data(), st.dictionaries(st.text(min_size=1), TYPES, min_size=1, max_size=4))
def test_whatever_is_asked_a_typed_answer_comes_back_as_it_was(data, pairs):
    asked = form({name: annotation for name, (annotation, _) in pairs.items()})
    answer = {name: data.draw(values) for name, (_, values) in pairs.items()}

    plain = validate(asked.schema, answer)

    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert validate(asked.schema, plain) == plain
    assert asked.convert(plain) == answer


@given(TYPES, JSON)
def test_whatever_is_answered_it_is_refused_or_can_be_converted(pair, answer):
    asked = form({"a": pair[0]})
    for given_answer in (answer, {"a": answer}):
        try:
            plain = validate(asked.schema, given_answer)
        except InvalidAnswer:
            continue
        asked.convert(plain)


@given(TYPES, st.text())
def test_whatever_is_typed_it_is_refused_or_can_be_converted(pair, text):
    asked = form({"a": pair[0]})
    try:
        plain = read_text(asked.schema, {"a": text})
    except InvalidAnswer:
        return
    asked.convert(plain)


@given(st.data(), st.sampled_from(LEAVES[:11]))
def test_a_value_written_as_text_is_read_as_it_was(data, pair):
    asked: Form = form(pair[0])
    value = data.draw(pair[1])
    plain = validate(asked.schema, value)

    read = read_text(asked.schema, plain if isinstance(plain, str) else json.dumps(plain))

    assert read == plain
