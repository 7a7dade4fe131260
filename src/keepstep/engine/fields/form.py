"""What is asked for, as a schema for the log and as types for the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from keepstep.engine.calls import is_text
from keepstep.engine.fields.answers import validate
from keepstep.engine.fields.classes import ClassField
from keepstep.engine.fields.types import FieldType, field_type, members
from keepstep.errors import BadInput, InvalidAnswer, shown


@dataclass(frozen=True, slots=True)
class Form:
    """What is asked for: the schema is complete without the types."""

    schema: dict[str, Any]
    make: Callable[[Any], Any]

    def convert(self, answer: Any) -> Any:
        """The typed value of a stored answer; BadInput if the types have changed so that it no longer fits."""
        try:
            plain = validate(self.schema, answer)
        except InvalidAnswer as error:
            told = "; ".join(f"{name or 'it'} {problem}" for name, problem in error.problems.items())
            raise BadInput(
                f"The stored answer does not fit what fields= asks for now: {told}. "
                "Ask for what was asked before, or ask anew under another prompt."
            ) from None
        return self.make(plain)


def form(fields: Any) -> Form:
    """What fields= asks for: types by name, a class with fields, or one type; None takes any answer."""
    if fields is None:
        return Form({}, lambda answer: answer)
    asked = _named(cast("Mapping[Any, Any]", fields)) if isinstance(fields, Mapping) else field_type(fields, "")
    return Form(asked.schema, asked.make)


def _named(fields: Mapping[Any, Any]) -> FieldType:
    if not fields:
        raise BadInput("fields= is empty; name the fields, or leave it out to take any answer.")
    for name in fields:
        if not is_text(name):
            raise BadInput(f"fields= has the name {shown(name)}; a field's name is text that is not empty.")
    schema, make = members([ClassField(name, asked, required=True) for name, asked in fields.items()], "", ())
    return FieldType(schema, make)
