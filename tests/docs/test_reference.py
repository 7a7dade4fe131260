import importlib
import importlib.util
import inspect
import re

import keepstep
from keepstep import errors
from keepstep.log.lifecycle import STATUSES
from keepstep.log.records import KINDS
from tests.docs.pages import PAGES, ROOT, blocks_in, name_of, table_under

ERRORS = ROOT / "docs/reference/errors.md"
LIMITS = ROOT / "docs/reference/limits.md"


def number_in(text):
    found = re.match(r"[\d,.]+", text)
    assert found, text
    return float(found[0].replace(",", ""))


def error_classes():
    return {name: one for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, BaseException)}


def test_the_page_of_errors_has_every_error_with_its_bases():
    rows = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in table_under(ERRORS, "What each means")}

    assert rows == {name: {base.__name__ for base in one.__bases__} for name, one in error_classes().items()}


def test_the_page_of_errors_draws_the_tree_that_the_module_draws():
    names = [re.findall(r"\w+", line)[0] for line in blocks_in(ERRORS)[0].text.splitlines()]
    drawn = (errors.__doc__ or "").split("\n\n")
    in_module = [found[0] for part in drawn[1:3] for line in part.splitlines() if (found := re.findall(r"\w+", line))]

    assert names == in_module
    assert set(names) == set(error_classes())


def test_what_an_error_carries_is_on_the_page():
    carried = {
        row[0].strip("`"): set(re.findall(r"`\.(\w+)`", row[3])) for row in table_under(ERRORS, "What each means")
    }
    held = errors.RunHeld("r", "owner", None)
    waiting = errors.RunWaiting("r")
    finished = errors.RunFinished("r", 1)
    missing = errors.NoSuchRun("r", ["s"])
    other = errors.WrongWorkflow("r", "a", "b")
    misfit = errors.InvalidAnswer({"n": "is missing"})
    effects = (
        errors.EffectInDoubt("r", "k", "pay()"), errors.EffectInFlight("r", "k", "pay()"),
        errors.ArgumentsChanged("r", "k", "pay(1)", "pay(2)"), errors.NotInDoubt("r", "k", "returned"),
    )  # fmt: skip
    gates = (
        errors.NoSuchGate("g", "r"), errors.AlreadyAnswered("r", "g", "ada", None), errors.GateExpired("r", "g"),
    )  # fmt: skip

    for one in (held, waiting, finished, missing, other, misfit, *effects, *gates):
        assert vars(one).keys() - {"run_id"} == carried[type(one).__name__]


def test_the_page_of_limits_has_every_limit_with_its_default():
    rows = {row[0].strip("`"): number_in(row[1]) for row in table_under(LIMITS, "Limits that can be set")}

    assert rows == keepstep.Limits()._asdict()


def test_the_page_of_limits_has_the_fixed_limits_as_they_are():
    for what, most, where, _ in table_under(LIMITS, "Limits that are fixed"):
        module, name = where.strip("`").rsplit(".", 1)
        assert number_in(most) == getattr(importlib.import_module(f"keepstep.{module}"), name), what


def drawing():
    """The script that draws tables from the code."""
    spec = importlib.util.spec_from_file_location("draw_tables", ROOT / "docs/draw_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_drawn_from_the_code_is_in_step_with_it():
    script = drawing()
    texts = {page: page.read_text("utf-8") for page in PAGES}
    drawn = [name for name in script.DRAWN for text in texts.values() if script.BEGIN.format(name) in text]

    assert sorted(drawn) == sorted(script.DRAWN)
    assert not [name_of(page) for page, text in texts.items() if script.draw(text) != text], "run docs/draw_tables.py"


def test_the_lifecycle_on_the_page_of_statuses_has_every_kind_and_status():
    rows = table_under(ROOT / "docs/reference/statuses.md", "Which record may follow")

    assert [row[0].strip("`*") for row in rows] == list(KINDS)
    assert all(len(row) == len(STATUSES) + 2 for row in rows)
