"""The public face: which names there are, what they say of themselves, and what importing them costs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import keepstep
import keepstep.testing
from keepstep import errors

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

NAMES = {
    "handles": [
        "AsyncHandle", "AsyncRun", "AsyncStore", "AsyncUsing", "AsyncWorker", "Handle", "Run", "Store", "Using",
        "Worker", "copy", "open", "open_async",
    ],
    "flows": ["Backoff", "Flow", "Next", "flow"],
    "tools": ["Done", "Doubt", "Effect", "Happened", "effect", "tool"],
    "results": [
        "Change", "Checkpoint", "CheckpointHead", "CopiedRun", "CopyReport", "Damage", "EffectLook", "GateLook",
        "HolderLook", "Look", "Outcome", "PageOf", "ParentLook", "RollbackItem", "RollbackPlan", "RunHead", "Size",
        "Verification",
    ],
    "classes of the user": ["Registry", "Unknown", "register"],
    "settings": ["LargeStateWarning", "Limits", "REMOVE", "SameThingWarning"],
    "errors": [
        "AlreadyAnswered", "ArgumentsChanged", "BadInput", "Cancelled", "CannotOpen", "CannotStore", "ClaimLost",
        "Damaged", "EffectError", "EffectInDoubt", "EffectInFlight", "GateError", "GateExpired", "InvalidAnswer",
        "KeepstepError", "KeyNeeded", "LeaseTooShort", "NewerFormat", "NoSuchCheckpoint", "NoSuchGate", "NoSuchRun",
        "NoSuchStep", "NotAStore", "NotAllowed", "NotDone", "NotInDoubt", "NothingToDo", "Pause", "ReadOnly",
        "Rejected", "ResultTimedOut", "RollbackRefused", "RollbackUnderWay", "RunCancelled", "RunError", "RunExists",
        "RunFailed", "RunFinished", "RunGone", "RunHeld", "RunWaiting", "StateMismatch", "StepTimedOut", "Stop",
        "StoreBusy", "StoreError", "StoreFailed", "StoreFull", "TimedOut", "TooLarge", "TooManyDeaths", "TooManySteps",
        "UndoFailed", "WrongUse", "WrongVersion", "WrongWorkflow",
    ],
}  # fmt: skip
NAMES_FOR_TESTS = ["Clock", "FaultyStore", "SimulatedCrash", "crash_everywhere"]

ONE_SENTENCE = re.compile(r"[A-Z`].{8,}\.")


def documented():
    """Every public class, function, method and property, by its full name."""
    found = {}
    for module in (keepstep, keepstep.testing):
        for name in module.__all__:
            one = getattr(module, name)
            if callable(one):
                found[f"{module.__name__}.{name}"] = one
            if inspect.isclass(one):
                found |= {f"{module.__name__}.{name}.{key}": member for key, member in members_of(one).items()}
    return found


def members_of(cls):
    static = {key: inspect.getattr_static(cls, key) for key in dir(cls) if not key.startswith("_")}
    return {
        key: one
        for key, one in static.items()
        if isinstance(one, property) or (inspect.isfunction(one) and one.__module__.startswith("keepstep"))
    }


def error_classes():
    return {name: one for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, BaseException)}


def drawn_tree():
    """The error tree as the module draws it: name, the name it hangs under, and the base in brackets behind it."""
    drawn = {}
    above: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ([│├└─ ]*)([A-Z]\w+)(?: \((\w+)\))?(?:  |$)", line)
        if found:
            depth = len(found[1]) // 4
            drawn[found[2]] = (above.get(depth - 1), found[3])
            above[depth] = found[2]
    return drawn


def loaded_by(code):
    """The modules that a fresh process has after running the code, beyond those it starts with."""
    script = f"import sys\nbefore = set(sys.modules)\n{code}\nprint('\\n'.join(sorted(set(sys.modules) - before)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


# --- names -----------------------------------------------------------------------------------------------------------


def test_these_names_are_public_and_no_others():
    assert sorted(keepstep.__all__) == sorted(name for names in NAMES.values() for name in names)
    assert sorted(keepstep.testing.__all__) == NAMES_FOR_TESTS


@pytest.mark.parametrize("module", [keepstep, keepstep.testing], ids=lambda module: module.__name__)
def test_every_public_name_is_there_and_what_is_there_is_public_or_a_module(module):
    there = {name for name, one in vars(module).items() if not name.startswith("_") and not inspect.ismodule(one)}

    assert there == set(module.__all__)
    assert len(module.__all__) == len(set(module.__all__))


# --- what they say of themselves -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "one"), documented().items(), ids=documented())
def test_a_docstring_begins_with_one_plain_sentence(name, one):
    first, _, rest = (inspect.getdoc(one) or "").partition("\n")

    assert ONE_SENTENCE.fullmatch(first), f"{name}: {first!r}"
    assert not rest or rest.startswith("\n"), f"{name}: an empty line follows the first"


def test_no_docstring_is_inherited_from_another_class():
    public = {one for names in NAMES.values() for name in names if inspect.isclass(one := getattr(keepstep, name))}

    assert not [one.__name__ for one in public if not one.__dict__.get("__doc__")]


# --- the tree of errors ----------------------------------------------------------------------------------------------


def test_the_tree_draws_every_error_and_no_other():
    assert set(drawn_tree()) == set(error_classes()) == set(NAMES["errors"])


def test_every_error_hangs_in_the_tree_where_its_class_does():
    classes = error_classes()

    for name, (above, besides) in drawn_tree().items():
        expected = [named for named in (above, besides) if named is not None] or ["Exception"]
        assert [base.__name__ for base in classes[name].__bases__] == expected, name


def test_every_error_is_the_one_that_is_public():
    assert {name: getattr(keepstep, name) for name in NAMES["errors"]} == error_classes()


# --- what they cost --------------------------------------------------------------------------------------------------

STORY = """
import keepstep, os, tempfile
with tempfile.TemporaryDirectory() as folder:
    for place in (os.path.join(folder, "runs.db"), f"dir:{folder}/runs", "memory:"):
        with keepstep.open(place) as store:
            store.save("a", {"n": 1}, workflow="w")
            with store.run("b", "w") as run:
                run.save({"n": 2})
                run.note("half")
                run.tag(customer="ada")
            store.carry(lambda run: 3, "b")
            store.fork("a", edits={"n": 4})
            store.runs(), store.due(), store.history("a"), store.look("b"), store.verify("a"), store.size("a")
"""

OURS = {"apsw", "keepstep", "msgspec", "ormsgpack", "typing_extensions", "zstandard"}
"""keepstep, what it depends on, and what they bring."""


@pytest.fixture(scope="module")
def loaded():
    return loaded_by(STORY)


def test_sync_use_imports_no_event_loop(loaded):
    assert "keepstep.store.sqlite" in loaded
    assert not {"asyncio", "concurrent.futures", "keepstep.runtime.event_loop", "keepstep.runtime.off_thread"} & loaded


def test_nothing_is_imported_that_was_not_asked_for(loaded):
    strangers = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - OURS

    assert not {name for name in strangers if not name.startswith("_")}
    assert not {name for name in loaded if name.startswith("keepstep.testing")}


def test_a_store_that_is_not_used_is_not_imported():
    loaded = loaded_by('import keepstep; keepstep.open("memory:").save("a", {"n": 1}, workflow="w")')

    assert "keepstep.store.memory" in loaded
    assert not {"apsw", "keepstep.store.sqlite", "keepstep.store.directory"} & loaded


def test_testing_needs_no_pytest_until_its_fixtures_are_imported():
    assert "pytest" not in loaded_by("import keepstep.testing")
    assert "pytest" in loaded_by("import keepstep.testing.fixtures")


# --- what is shipped -------------------------------------------------------------------------------------------------


def test_the_version_is_that_of_the_project():
    assert keepstep.__version__ == PROJECT["project"]["version"] == version("keepstep")


def test_the_package_is_typed_and_has_its_statements():
    package = files("keepstep")
    statements = list((ROOT / "src/keepstep").rglob("*.sql"))

    assert package.joinpath("py.typed").is_file()
    assert statements
    for path in statements:
        assert package.joinpath(*path.relative_to(ROOT / "src/keepstep").parts).read_text("utf-8").strip()


def test_the_wheel_leaves_nothing_of_the_package_out():
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert wheel == {"packages": ["src/keepstep"]}  # the whole folder: py.typed and the .sql files with it
    assert not [name for name in (ROOT / ".gitignore").read_text("utf-8").split() if name.endswith((".sql", ".typed"))]
