"""What is wrong with a call is said in the call: an error of keepstep's, nothing written, the handle as good as before.

The table has bad values for every parameter of every public method; a test makes sure that it has.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest

import keepstep
from keepstep.errors import shown
from tests.places import Place


class Mute:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


HUGE = 10**5000  # more digits than Python is willing to print
LONE = "a\ud800"  # half of a surrogate pair
ANYTHING = (Mute(), object(), b"x", 1j)

TEXT = (*ANYTHING, 5, ["r"], "", LONE, "x" * 100_000)
RUN_ID = (*TEXT, None)
NUMBER = (*ANYTHING, "1", 1.5, 1.0, True, [1], math.nan)
STEP = (*NUMBER, -1, 1 << 53, HUGE)
TRUTH = (*ANYTHING, None, 1, 0, "yes", [])
LENGTH = (*ANYTHING, "soon", "", "5", True, [1], math.nan, math.inf, -1, -HUGE, HUGE)
LIMIT = (*NUMBER, None, 0, -1, 1001, HUGE)
CURSOR = (*ANYTHING, 5, "", LONE, "x", "9" * 5000)
UNSTORABLE = (object(), {"a": [Mute()]}, {object(): 1}, lambda: 1, 1j)
TAGS = (*ANYTHING, 5, [("a", 1)], {5: 1}, {"": 1}, {LONE: 1}, {"a": LONE}, {"a": [1]}, {"a": HUGE}, {"a": Mute()},
    {"a": math.nan}, {"x" * 300: 1}, {"a": "x" * 300}, {f"t{number}": 1 for number in range(33)})  # fmt: skip
CLASS = (*ANYTHING, 5, "dict", int, list, [dict], dict[str, int])
LIFT = (*ANYTHING, 5, [(1, dict)], {"1": dict}, {1: 5}, {True: dict}, {1.5: dict}, dict)
SHAPE = {"state": CLASS, "version": (*NUMBER, None, 0, -1, -HUGE), "lift": LIFT}
ENTRY = {"run_id": RUN_ID, "workflow": TEXT, "wait": (*LENGTH, None), **SHAPE}
PAGE = {"limit": LIMIT, "cursor": CURSOR}
SAVED = {"state": UNSTORABLE, "next": TEXT, "step": STEP, "label": TEXT}

STORE: dict[str, dict[str, tuple[Any, ...]]] = {
    "run": ENTRY,
    "claim": ENTRY,
    "claim_due": {"workflow": TEXT, "limit": LIMIT, **SHAPE},
    "carry": {"function": (None, object(), 5, "work"), **ENTRY},
    "save": {**SAVED, "run_id": RUN_ID, "workflow": TEXT, "version": SHAPE["version"]},
    "load": {"run_id": RUN_ID, **SHAPE},
    "look": {"run_id": RUN_ID, **SHAPE},
    "history": {"run_id": RUN_ID, "newest_first": TRUTH, **PAGE},
    "at": {"run_id": RUN_ID, "step": NUMBER, "seq": NUMBER, "label": TEXT, **SHAPE},
    "diff": {"run_id": RUN_ID, "old": NUMBER, "new": NUMBER, "other": TEXT},
    "runs": {
        "workflow": TEXT,
        "status": (*ANYTHING, 5, "", "done", ["ready", 5], [["ready"]], [Mute()], {"ready": 1, "x": 2}),
        "tags": TAGS,
        "starts_with": (*ANYTHING, None, 5, ["r"], LONE),
        "order": (*ANYTHING, None, 5, "", "name", ["created"]),
        "newest_first": TRUTH,
        **PAGE,
    },
    "due": {"workflow": TEXT, **PAGE},
    "children": {"run_id": RUN_ID, **PAGE},
    "changes": {"timeout": LENGTH},
    "fork": {
        "run_id": RUN_ID,
        "at": NUMBER,
        "edits": (*ANYTHING, 5, "x", [1], {"a": object()}, {"a": {"b": [1j]}}),
        "id": TEXT,
        **SHAPE,
    },
    "tag": {"run_id": RUN_ID, "tags": TAGS, "more": (LONE, [1], HUGE, Mute(), object(), math.nan, "x" * 300)},
    "note": {"run_id": RUN_ID, "value": UNSTORABLE},
    "delete": {"run_id": RUN_ID, "force": TRUTH},
    "verify": {"run_id": RUN_ID, "expect": (*ANYTHING, 5, "", "zz", "00", LONE, "0" * 100_000)},
    "size": {"run_id": TEXT},
    "backup": {"target": (*ANYTHING, None, 5, "", " ", LONE, "nul\0", ["x"])},
    "close": {},
}
"""Bad values for each parameter, by method."""

RUN: dict[str, dict[str, tuple[Any, ...]]] = {
    "save": SAVED,
    "finish": {"result": UNSTORABLE},
    "note": {"value": UNSTORABLE},
    "tag": {key: values for key, values in STORE["tag"].items() if key != "run_id"},
    "close": {},
}

NEEDED: dict[str, Any] = {"run_id": "r", "function": lambda run: None, "state": {"n": 1}, "value": 1, "target": "copy"}
"""Good values for parameters without a default."""

WORDS = {
    "run_id": "run",
    "id": "run",
    "tags": "ag",
    "more": "ag",
    "function": "function",
    "target": "path",
    "value": "note",
    "at": "step",
    "edits": "state",
    "old": "step",
    "new": "step",
    "other": "run",
}
"""What a parameter is called in messages, where that is not its name."""

PLACES = ["memory-sync", "memory-async", "dir-async", "sqlite-sync"]
everywhere = pytest.mark.parametrize("place", PLACES, indirect=True)


def every(table):
    return [pytest.param(method, name, id=f"{method}-{name}") for method, names in table.items() for name in names]


def parameters_of(cls):
    methods = {name: one for name, one in vars(cls).items() if inspect.isfunction(one) and not name.startswith("_")}
    return {name: set(inspect.signature(one).parameters) - {"self"} for name, one in methods.items()}


def call(handle, method, name, value):
    """Call a method with one argument that is bad."""
    signature = inspect.signature(getattr(keepstep.Run if is_run(handle) else keepstep.Store, method))
    needed = [one.name for one in signature.parameters.values() if one.name in NEEDED and one.default is one.empty]
    given = {one: NEEDED[one] for one in needed}
    if method == "tag":
        first = [value] if name == "run_id" else [given["run_id"]] if "run_id" in given else []
        return handle.tag(*first, value) if name == "tags" else handle.tag(*first, mark=value if name == "more" else 1)
    found = getattr(handle, method)(**{**given, name: value})
    if method == "run":
        with found:
            return None
    return list(found) if method == "changes" else found


def is_run(handle):
    return hasattr(handle, "epoch")


def picture(store):
    """Everything that a write would change."""
    runs = store.runs(limit=100).items
    return [(one.run_id, one.digest, one.status, one.tags, one.holder and one.holder.owner) for one in runs]


def refused(handle, method, name, value):
    """The error that a bad argument gives; whatever is not keepstep's own is raised on."""
    try:
        call(handle, method, name, value)
    except keepstep.KeepstepError as error:
        return error
    raise AssertionError(f"{method}({name}=) takes {shown(value)}")


def check(error: keepstep.KeepstepError, name: str, value: object) -> None:
    """It is about the argument, and says so in a sentence."""
    message = str(error)
    assert isinstance(error, keepstep.BadInput), f"{type(error).__name__}: {message}"
    assert WORDS.get(name, name) in message or shown(value)[:20] in message, message
    assert message.endswith(".")
    assert len(message) < 1000


# --- the table -------------------------------------------------------------------------------------------------------


def test_no_parameter_is_left_out():
    for table, classes in ((STORE, (keepstep.Store, keepstep.AsyncStore)), (RUN, (keepstep.Run, keepstep.AsyncRun))):
        for cls in classes:
            assert {name: set(bad) for name, bad in table.items()} == parameters_of(cls)


@everywhere
@pytest.mark.parametrize(("method", "name"), every(STORE))
def test_a_bad_argument_of_a_store_is_refused_and_harms_nothing(place: Place, method, name):
    store = place.open()
    store.save("r", {"n": 1}, workflow="w", label="first")
    before = picture(store)

    for value in STORE[method][name]:
        check(refused(store, method, name, value), name, value)

    assert picture(store) == before
    assert store.save("r", {"n": 2}) == 2


@everywhere
@pytest.mark.parametrize(("method", "name"), every(RUN))
def test_a_bad_argument_of_a_run_is_refused_and_harms_nothing(place: Place, method, name):
    store = place.open()
    run = store.claim("r", "w")
    run.save({"n": 1})
    before = picture(store)

    for value in RUN[method][name]:
        check(refused(run, method, name, value), name, value)

    assert picture(store) == before
    assert run.state == {"n": 1}
    assert run.save({"n": 2}) == 2
    run.finish()
    assert store.verify("r").ok
