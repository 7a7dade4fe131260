"""The typed answers of a gate: what is asked for, as a schema that is stored, and as types that stay with the code.

what code asks for ──form──▶ schema, stored in the log ──▶ drawn by a CLI or a page
                                │
a person's texts ──read_text──▶ │ ──validate──▶ answer, stored ──Form.convert──▶ typed value
a program's values ───────────▶ │

types       types: the schema of each, and its value made of an answer
classes     the fields of Structs, dataclasses and pydantic models
limits      what Annotated says: limits, titles
answers     answers checked against a schema alone
texts       texts read by a schema
wording     what a schema asks for, in words
"""

from keepstep.engine.fields.answers import validate
from keepstep.engine.fields.form import Form, form
from keepstep.engine.fields.texts import read_text

__all__ = ["Form", "form", "read_text", "validate"]
