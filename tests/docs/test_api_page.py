import inspect
import re
import typing

import pytest

import keepstep
import keepstep.testing
from tests.docs.pages import ROOT, headings_in, table_under

API = ROOT / "docs/reference/api.md"
TEXT = API.read_text("utf-8")
SIGNATURES = {heading.strip("`") for heading in headings_in(API) if heading.startswith("`")}

HANDLES = {
    "store": keepstep.Store, "run": keepstep.Run, "flow": keepstep.Flow, "handle": keepstep.Handle,
    "worker": keepstep.Worker,
    "registry": keepstep.Registry, "clock": keepstep.testing.Clock,
}  # fmt: skip
TOOL = typing.get_overloads(keepstep.tool)[-1]  # the other one is for `@keepstep.tool` alone
FUNCTIONS = (
    keepstep.open, keepstep.open_async, keepstep.copy, keepstep.register, keepstep.effect, TOOL, keepstep.flow,
    keepstep.testing.crash_everywhere,
)  # fmt: skip
MADE_BY_TESTS = (keepstep.testing.FaultyStore, keepstep.testing.Clock)
RESULTS = (
    keepstep.Change, keepstep.Checkpoint, keepstep.CheckpointHead, keepstep.Damage, keepstep.Doubt, keepstep.Effect,
    keepstep.EffectLook, keepstep.GateLook, keepstep.Happened, keepstep.HolderLook, keepstep.Look, keepstep.Outcome,
    keepstep.PageOf, keepstep.ParentLook, keepstep.RunHead, keepstep.Size, keepstep.Unknown, keepstep.Verification,
)  # fmt: skip
INHERITING = {keepstep.Look: keepstep.RunHead, keepstep.Checkpoint: keepstep.CheckpointHead}


class Nothing:
    """Stands for a default that only says that nothing was given."""

    def __repr__(self):
        return "..."


def bare(parameter):
    default = Nothing() if type(parameter.default) is object else parameter.default
    return parameter.replace(annotation=parameter.empty, default=default)


def written(function, name=None):
    """A signature as the page has it: names and defaults, no types."""
    signature = inspect.signature(function)
    parameters = [bare(one) for one in signature.parameters.values() if one.name != "self"]
    plain = signature.replace(parameters=parameters, return_annotation=signature.empty)
    return f"{name or function.__name__}{plain}"


def methods_of(cls):
    members = {name: inspect.getattr_static(cls, name) for name in dir(cls) if not name.startswith("_")}
    return {name: one for name, one in members.items() if inspect.isfunction(one)}


def properties_of(cls):
    return {name for name in dir(cls) if not name.startswith("_") and isinstance(getattr(cls, name), property)}


def fields_of(cls):
    return set(inspect.signature(cls).parameters) | properties_of(cls)


def test_every_function_and_method_stands_on_the_page_with_its_parameters_and_no_other_does():
    methods = {
        written(method, f"{handle}.{name}")
        for handle, cls in HANDLES.items()
        for name, method in methods_of(cls).items()
    }
    functions = {written(function) for function in FUNCTIONS} | {written(cls) for cls in MADE_BY_TESTS}

    assert methods | functions == SIGNATURES


@pytest.mark.parametrize(
    ("plain", "other"),
    [
        (keepstep.Store, keepstep.AsyncStore),
        (keepstep.Run, keepstep.AsyncRun),
        (keepstep.Using, keepstep.AsyncUsing),
        (keepstep.Handle, keepstep.AsyncHandle),
        (keepstep.Worker, keepstep.AsyncWorker),
    ],
    ids=lambda cls: cls.__name__,
)
def test_the_async_handles_have_the_same_names_and_parameters_as_the_page_says(plain, other):
    assert {written(one, name) for name, one in methods_of(plain).items()} == {
        written(one, name) for name, one in methods_of(other).items()
    }
    assert properties_of(plain) == properties_of(other)


@pytest.mark.parametrize("cls", RESULTS, ids=lambda cls: cls.__name__)
def test_every_field_of_what_reading_gives_stands_on_the_page(cls):
    rows = [row[0].strip("`") for row in table_under(API, cls.__name__)]
    inherited = fields_of(INHERITING[cls]) if cls in INHERITING else set()

    assert len(rows) == len(set(rows))
    assert set(rows) == fields_of(cls) - inherited


@pytest.mark.parametrize("cls", [keepstep.Run, keepstep.Store], ids=lambda cls: cls.__name__)
def test_every_attribute_of_a_handle_stands_on_the_page(cls):
    assert {row[0].strip("`") for row in table_under(API, cls.__name__)} == properties_of(cls)


def test_every_public_name_stands_on_the_page_or_among_the_errors():
    on_pages = TEXT + (ROOT / "docs/reference/errors.md").read_text("utf-8")
    names = [*keepstep.__all__, *keepstep.testing.__all__]

    assert not [name for name in names if not re.search(rf"`{name}\b|^### {name}$", on_pages, re.MULTILINE)]
