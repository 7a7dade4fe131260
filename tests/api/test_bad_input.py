"""What is wrong with a call is said in the call: an error of keepstep's, nothing written, the handle as good as before.

The table has bad values for every parameter of every public method; a test makes sure that it has.
"""

from __future__ import annotations

import inspect
import math
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import keepstep
from keepstep.errors import shown
from tests.handles import LOOP, Behind
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
NAME = (*TEXT, None)
WORDING = (*ANYTHING, 5, ["r"], "", LONE)
FUNCTION = (*ANYTHING, 5, "pay", ["pay"])
KEYS = (*ANYTHING, None, 5, "key", [5], [Mute()], ["a", None])
UNDO = (*ANYTHING, 5, "void", ["void"], {"pay": "void"}, {5: print}, {"pay": None})
TOOL = {
    "target": TEXT,
    "undo": FUNCTION,
    "idempotent": tuple(one for one in TRUTH if one is not None),
    "reconcile": FUNCTION,
    "not_done": (*ANYTHING, 5, "ValueError", ValueError, [5], ["ValueError"], [int], [ValueError, None]),
    "unsure": (*ANYTHING, 5, "", "never", ["ask"]),
    "min_lease": (*ANYTHING, "soon", "1", True, [1], math.nan, math.inf, -1, -HUGE, HUGE),
}
CALL = {
    "function": (*ANYTHING, None, 5, "pay"),
    "args": (object(), {"a": [Mute()]}, lambda: 1, 1j),
    "kwargs": (object(), {"a": [Mute()]}, lambda: 1, 1j),
}
FLOWS = (*ANYTHING, None, 5, "refund", len, keepstep.Flow("without steps"))
FIELDS = (
    *ANYTHING,
    5,
    "int",
    [int],
    {},
    {"": int},
    {5: int},
    {LONE: int},
    {"a": 5},
    {"a": Mute()},
    {"a": complex},
    dict,
)
MOMENT = (
    *(*ANYTHING, None, 5, "tomorrow", 1.5, timedelta(1)),
    *(datetime(2030, 1, 1), datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))),  # noqa: DTZ001
)
SAVED = {"state": UNSTORABLE, "next": TEXT, "step": STEP, "label": TEXT}

STORE: dict[str, dict[str, tuple[Any, ...]]] = {
    "run": ENTRY,
    "claim": ENTRY,
    "claim_due": {"workflow": TEXT, "limit": LIMIT, **SHAPE},
    "carry": {"function": (None, object(), 5, "work"), "input": ({"n": 1}, 5), "tags": ({"a": 1}, 5), **ENTRY},
    "start": {"flow": FLOWS, "input": UNSTORABLE, "id": TEXT, "tags": TAGS},
    "handle": {"run_id": RUN_ID, "flow": (*ANYTHING, 5, "refund")},
    "reopen": {"run_id": RUN_ID, "by": TEXT, "reason": (*ANYTHING, 5, ["r"])},
    "worker": {
        "flows": FLOWS,
        "concurrency": (*NUMBER, None, 0, -1, HUGE),
        "poll": (*LENGTH, None, 0),
        "grace": (*LENGTH, None),
        "deaths": (*NUMBER, None, 0, -1, HUGE),
        "alive": (*ANYTHING, 5, "", ["x"]),
    },
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
        "effects": (*ANYTHING, None, 5, "", "again", ["ask"]),
        **SHAPE,
    },
    "tag": {"run_id": RUN_ID, "tags": TAGS, "more": (LONE, [1], HUGE, Mute(), object(), math.nan, "x" * 300)},
    "note": {"run_id": RUN_ID, "value": UNSTORABLE},
    "cancel": {"run_id": RUN_ID, "reason": (*ANYTHING, 5, ["r"]), "by": TEXT},
    "delete": {"run_id": RUN_ID, "force": TRUTH},
    "inbox": {"workflow": TEXT, **PAGE},
    "gate": {"gate_id": (*RUN_ID, "cg.00", "gate")},
    "answer": {"gate_id": (*RUN_ID, "cg.00", "gate"), "value": UNSTORABLE, "by": TEXT},
    "send": {"run_id": RUN_ID, "name": NAME, "value": UNSTORABLE, "id": TEXT},
    "effects": {"run_id": RUN_ID},
    "settle": {"run_id": RUN_ID, "key": NAME, "happened": TRUTH, "result": UNSTORABLE, "by": TEXT},
    "mark": {
        "run_id": RUN_ID,
        "key": NAME,
        "tool": NAME,
        "target": TEXT,
        "reversible": TRUTH,
        "workflow": NAME,
    },
    "plan_rollback": {"run_id": RUN_ID, "to": (*NUMBER, None), "keep": (*KEYS, ["unknown"]), "undo": UNDO},
    "rollback": {
        "run_id": RUN_ID,
        "to": (*NUMBER, None),
        "keep": (*KEYS, ["unknown"]),
        "undo": UNDO,
        "undone": KEYS,
        "not_undone": KEYS,
    },
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
    "memo": CALL,
    "once": CALL,
    "using": {
        "key": (*TEXT, lambda: "key"),
        **TOOL,
        "approve": WORDING,
        "expires": LENGTH,
        "default": TOOL["idempotent"],
        "rejected": (*ANYTHING, 5, "", "ignore", ["raise"]),
    },
    "gather": {"calls": (*ANYTHING, None, 5, "memo")},
    "ask": {
        "prompt": (*WORDING, None),
        "fields": FIELDS,
        "expires": LENGTH,
        "default": UNSTORABLE,
        "key": TEXT,
        "wait": TRUTH,
    },
    "confirm": {
        "prompt": (*WORDING, None),
        "expires": LENGTH,
        "default": (*ANYTHING, None, 5, "perhaps", [True]),
        "key": TEXT,
    },
    "sleep": {"duration": (*LENGTH, None)},
    "sleep_until": {"moment": MOMENT},
    "receive": {"name": NAME, "timeout": LENGTH},
    "close": {},
}

USING: dict[str, dict[str, tuple[Any, ...]]] = {"once": CALL, "memo": CALL}

TOOLS: dict[str, tuple[Any, ...]] = {
    "function": (*ANYTHING, 5, "pay", len, int, staticmethod(print)),
    "name": WORDING,
    "key": FUNCTION,
    **{name: values if name != "target" else WORDING for name, values in TOOL.items()},
}
"""Bad values for what is said at a tool. How long a name may be, only a store knows: it says so when it is called."""


def pay(*args: Any, **kwargs: Any) -> str:
    return "paid"


FLOW = keepstep.flow("good")(lambda run: None)

NEEDED: dict[str, Any] = {
    "flow": FLOW,
    "run_id": "r",
    "function": lambda run: None,
    "state": {"n": 1},
    "value": 1,
    "target": "copy",
    "gate_id": "",
    "name": "news",
    "key": "key",
    "happened": True,
    "tool": "pay",
    "to": 1,
    "prompt": "Go on?",
    "duration": 1,
}
"""Good values for parameters without a default; the gate is one that each test has opened."""

WORDS = {
    "run_id": "run",
    "id": "run",
    "tags": "ag",
    "more": "ag",
    "function": "function",
    "flow": "low",
    "flows": "low",
    "input": "state",
    "target": "path",
    "value": ("note", "message", "answer"),
    "gate_id": "gate",
    "args": "arguments",
    "kwargs": "arguments",
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
    if "gate_id" in given:
        given["gate_id"] = handle.inbox().items[0].id
    if method in ("memo", "once"):
        return call_through(getattr(handle, method), name, value)
    if method == "using":
        about = {"approve": "Pay?"} if name in ("expires", "default", "rejected") else {}
        return handle.using(**about, **{name: value}).once(pay)
    if method == "gather":
        return gather(handle, value)
    if method == "tag":
        first = [value] if name == "run_id" else [given["run_id"]] if "run_id" in given else []
        return handle.tag(*first, value) if name == "tags" else handle.tag(*first, mark=value if name == "more" else 1)
    if method == "worker":
        return handle.worker(value) if name == "flows" else handle.worker(FLOW, **{name: value})
    found = getattr(handle, method)(**{**given, name: value})
    if method == "run":
        with found:
            return None
    return list(found) if method == "changes" else found


def call_through(method, name, value):
    """Call a function through the ledger, with one thing about it that is bad."""
    if name == "function":
        return method(value)
    return method(pay, value) if name == "args" else method(pay, card=value)


def gather(run, value):
    """Gather something that cannot be, besides something that can."""
    if isinstance(run, Behind):
        return LOOP.run(run._handle.gather(run._handle.memo(pay), value))
    return run.gather(lambda: run.memo(pay), value)


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
    words = WORDS.get(name, name)
    named = [f"{name}=", *([words] if isinstance(words, str) else words)]
    assert any(word in message for word in named) or shown(value)[:20] in message, message
    assert message.endswith(".")
    assert len(message) < 1000


# --- the table -------------------------------------------------------------------------------------------------------


def test_no_parameter_is_left_out():
    tables = (
        (STORE, (keepstep.Store, keepstep.AsyncStore)),
        (RUN, (keepstep.Run, keepstep.AsyncRun)),
        (USING, (keepstep.Using, keepstep.AsyncUsing)),
    )
    for table, classes in tables:
        for cls in classes:
            assert {name: set(bad) for name, bad in table.items()} == parameters_of(cls)
    assert set(TOOLS) == set(inspect.signature(keepstep.tool).parameters)


@everywhere
@pytest.mark.parametrize(("method", "name"), every(STORE))
def test_a_bad_argument_of_a_store_is_refused_and_harms_nothing(place: Place, method, name):
    store = place.open()
    store.save("r", {"n": 1}, workflow="w", label="first")
    with store.run("gated", "w") as run:
        run.ask("Go on?")
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


@everywhere
@pytest.mark.parametrize(("method", "name"), every(USING))
def test_a_bad_argument_of_a_call_with_a_key_is_refused_and_leaves_the_key_free(place: Place, method, name):
    store = place.open()
    run = store.claim("r", "w")
    before = picture(store)

    for value in USING[method][name]:
        with pytest.raises(keepstep.BadInput) as raised:
            call_through(getattr(run.using(key="key"), method), name, value)
        check(raised.value, name, value)

    assert picture(store) == before
    assert store.effects("r") == []
    assert getattr(run.using(key="key"), method)(pay) == "paid"


# --- what is said at a tool ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TOOLS)
def test_what_makes_no_sense_at_a_tool_is_refused_where_it_is_said(name):
    for value in TOOLS[name]:
        with pytest.raises(keepstep.BadInput) as raised:
            keepstep.tool(value) if name == "function" else keepstep.tool(**{name: value})
        check(raised.value, name, value)


def test_what_is_no_tool_is_refused_also_when_something_is_said_of_it():
    mark: Any = keepstep.tool(name="pay")
    for value in TOOLS["function"]:
        with pytest.raises(keepstep.BadInput) as raised:
            mark(value)
        check(raised.value, "function", value)


def test_what_is_said_together_with_the_function_holds():
    tool: Any = keepstep.tool
    named = tool(lambda: "paid", name="pay")

    with keepstep.open("memory:") as store, store.run("r", "w") as run:
        run.once(named)
        assert [one.tool for one in store.effects("r")] == ["pay"]


@everywhere
@pytest.mark.parametrize(
    "key", [Mute(), None, "", LONE, 1.5, True, HUGE, "x" * 100_000], ids=lambda key: shown(key)[:9]
)
def test_a_key_that_a_tool_cannot_have_is_refused_before_it_is_called(place: Place, key):
    store = place.open()
    run = store.claim("r", "w")
    before = picture(store)
    named = keepstep.tool(key=lambda: key)(lambda: pytest.fail("it was called"))

    with pytest.raises(keepstep.BadInput) as raised:
        run.once(named)

    check(raised.value, "key", key)
    assert picture(store) == before


# --- the handle is as good as before ---------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("bad", [{"default": object()}, {"fields": int, "default": "x"}, {"wait": 1}, {"fields": 5}])
def test_a_question_that_was_refused_is_not_counted(place: Place, bad):
    store = place.open()
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.BadInput):
            run.ask("Go on?", **bad)
        run.ask("Go on?")
    store.answer(store.inbox().items[0].id, "yes")

    with store.run("r") as run:
        assert run.ask("Go on?") == "yes"
