"""simple-agents-workflow: a file per run, with step, next node and scope; saved, loaded, deleted (twice is fine)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import keepstep
from tests import handles
from tests.children import in_child
from tests.places import Place
from tests.seeds.stored_files import tree

SCOPE: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "refund order 7, please \U0001f64f"},
        {"role": "assistant", "content": ""},
    ],
    "amount": 40.10,
    "attempts": 0,
    "approved": None,
    "flags": [True, False],
    "nested": {"a": {"b": [[], {}]}},
    "line breaks": "one\ntwo\r\n\u2028three",
}


@pytest.fixture(params=["sync", "async"])
def directory(request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    """Room for a store in a directory, in both modes."""
    place = Place("dir", request.param, folder)
    yield place
    place.close()


# --- save and load ---------------------------------------------------------------------------------------------------


def test_a_checkpoint_comes_back_as_it_was_saved(place):
    place.open().save("run-1", SCOPE, next="review", step=4, workflow="triage")

    found = place.open().load("run-1")

    assert (found.run_id, found.workflow, found.step, found.next) == ("run-1", "triage", 4, "review")
    assert found.state == SCOPE


@pytest.mark.parametrize(
    "scope",
    [
        {1: "a", "1": "b"}, {"pair": (1, [2])}, {"when": datetime(2025, 6, 1, tzinfo=UTC)}, {"raw": b"\xff\0"},
        {"nan": float("inf"), "large": 1 << 80}, {"seen": {1, 2}}, {"": {"": ""}}, {},
    ],
    ids=repr,
)  # fmt: skip
def test_what_json_would_change_or_refuse_comes_back_the_same(place, scope):
    place.open().save("run-1", scope, workflow="triage")

    assert repr(place.open().load("run-1").state) == repr(scope)


def test_the_last_node_has_no_next_one(store):
    store.save("run-1", SCOPE, next="last", workflow="triage")
    store.save("run-1", SCOPE)

    assert store.load("run-1").next is None


def test_what_loads_is_what_was_saved_last(place):
    one, two = place.open(), place.open()
    scope = {"messages": ["words " * 50]}
    for step in range(8):
        scope["messages"].append(f"message {step}")
        (one, two)[step // 2 % 2].save("run-1", scope, next=f"node {step + 1}", step=step, workflow="triage")

        for store in (one, two, place.open()):
            found = store.load("run-1")
            assert (found.step, found.next, found.state) == (step, f"node {step + 1}", scope)


def test_what_was_never_saved_loads_as_none_and_leaves_nothing(place):
    store = place.open()
    before = tree(place.folder)

    assert store.load("run-1") is None

    assert tree(place.folder) == before
    assert store.runs().items == []


def test_a_save_without_a_workflow_creates_nothing(place):
    store = place.open()
    before = tree(place.folder)

    with pytest.raises(keepstep.NoSuchRun, match="workflow="):
        store.save("run-1", SCOPE, next="review", step=4)

    assert tree(place.folder) == before
    assert store.load("run-1") is None


def test_runs_do_not_see_each_other(store):
    for number in range(10):
        store.save(f"run-{number}", {"number": number}, next=f"node {number}", step=number, workflow="triage")
    store.delete("run-3")

    for number in {*range(10)} - {3}:
        found = store.load(f"run-{number}")
        assert (found.step, found.next, found.state) == (number, f"node {number}", {"number": number})


# --- delete ----------------------------------------------------------------------------------------------------------


def test_deleting_twice_is_fine(place):
    one, two = place.open(), place.open()
    one.save("run-1", SCOPE, workflow="triage")
    one.save("run-2", SCOPE, workflow="triage")

    assert [store.delete("run-1") for store in (one, two, one, two)] == [True, False, False, False]

    for store in (one, two, place.open()):
        assert store.load("run-1") is None
        assert [line.run_id for line in store.runs().items] == ["run-2"]


def test_deleting_what_never_was_leaves_nothing(place):
    store = place.open()
    before = tree(place.folder)

    assert store.delete("run-1") is False

    assert tree(place.folder) == before


def test_a_deleted_run_starts_afresh_under_the_same_id(store):
    store.save("run-1", SCOPE, next="review", step=40, workflow="triage")
    store.delete("run-1")

    store.save("run-1", {"again": True}, step=0, workflow="triage")

    found = store.load("run-1")
    assert (found.step, found.next, found.state) == (0, None, {"again": True})
    assert len(store.history("run-1").items) == 1


# --- a workflow ------------------------------------------------------------------------------------------------------

GRAPH = {"fetch": "decide", "decide": "pay", "pay": "tell", "tell": None}


def walk(store: keepstep.Store, visited: list[str], nodes: int) -> None:
    """Carry the graph on from wherever it stands, by at most so many nodes."""
    found = store.load("run-1")
    scope, node, step = (found.state, found.next, found.step) if found else ({"path": []}, "fetch", 0)
    while node is not None and nodes:
        visited.append(node)
        scope["path"].append(node)
        node, step, nodes = GRAPH[node], step + 1, nodes - 1
        store.save("run-1", scope, next=node, step=step, workflow="triage")


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_workflow_goes_on_from_its_next_node_in_another_process(place, nodes):
    visited: list[str] = []
    for _ in GRAPH:
        store = place.open()
        walk(store, visited, nodes)
        place.kill(store)

    found = place.open().load("run-1")
    assert visited == found.state["path"] == list(GRAPH)
    assert (found.step, found.next) == (len(GRAPH), None)


# --- one file per run ------------------------------------------------------------------------------------------------


def test_each_run_is_one_flat_file_that_can_be_read_as_json(directory):
    ids = ["proj/task.1 final", "proj/task.2 final", "proj-task.1-final", "run 1"]
    store = directory.open()
    for number, run_id in enumerate(ids):
        store.save(run_id, SCOPE, next="review", step=number, workflow="triage")
        store.save(run_id, SCOPE, next="pay", workflow="triage")

    files = sorted((directory.path / "runs").rglob("*"))
    assert len(files) == len(ids)
    assert all(path.is_file() and path.parent == directory.path / "runs" for path in files)
    lines = [[json.loads(line) for line in path.read_text().splitlines()] for path in files]
    assert sorted(file[0]["run"] for file in lines) == sorted(ids)
    for file in lines:
        assert [line["records"][-1]["head"]["next"] for line in file] == ["review", "pay"]
        assert file[-1]["row"]["workflow"] == "triage"
    for number, run_id in enumerate(ids):
        assert directory.open().load(run_id).step == number + 1


# --- what is wrong with the files ------------------------------------------------------------------------------------


def cut(file: Path, start: int, end: int) -> None:
    """What was written last is not there."""
    os.truncate(file, start)


def blank(file: Path, start: int, end: int) -> None:
    """What was written last takes its room, and some of it never reached the disk."""
    content = file.read_bytes()
    file.write_bytes(content[:start] + b"\0" * (end - 1 - start) + content[end - 1 :])


@pytest.mark.parametrize("tear", [cut, blank])
def test_a_file_torn_in_the_middle_of_a_save_loads_as_the_checkpoint_before(
    disk_place: Place, tear: Callable[[Path, int, int], None]
):
    store = disk_place.open()
    store.save("run-1", {"at": 1}, next="two", workflow="triage")
    newest = disk_place.path / "runs" / "run-1.jsonl" if disk_place.kind == "dir" else Path(f"{disk_place.path}-wal")
    before = newest.stat().st_size
    store.save("run-1", {"at": 2}, next="three")
    after = newest.stat().st_size
    assert after > before

    for start, at in ((before, 1), (before + 1, 1), ((before + after) // 2, 1), (after - 40, 1), (after, 2)):
        copy = disk_place.folder / f"copy {start}"
        shutil.copytree(disk_place.folder, copy, ignore=shutil.ignore_patterns("copy *", "*-shm"))
        if start < after:
            tear(copy / newest.relative_to(disk_place.folder), start, after)
        with disk_place.open(f"{disk_place.kind}:{copy / disk_place.path.name}") as crashed:
            found = crashed.load("run-1")
            assert found is not None
            assert (found.step, found.state) == (at, {"at": at})
            assert crashed.verify("run-1").ok
            assert crashed.save("run-1", {"at": "again"}) == at + 1
            assert crashed.look("run-1").state == {"at": "again"}


@pytest.mark.parametrize("read_only", [True, False])
def test_what_may_not_be_read_is_an_error_and_not_no_checkpoint(disk_place, read_only):
    store = disk_place.open()
    store.save("run-1", SCOPE, next="review", workflow="triage")
    store.close()
    for path in disk_place.folder.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    disk_place.folder.chmod(0o777)
    # The store's own place, the run's file in it, and the folder it is in.
    within = [disk_place.path / "runs", disk_place.path / "runs" / "run-1.jsonl"] if disk_place.kind == "dir" else []

    def load_as_nobody() -> Any:
        if os.geteuid() == 0:  # root may read everything
            os.setgid(65534)
            os.setuid(65534)
        handles.LOOP = handles.LoopThread()  # the parent's runs in a thread that this process does not have
        try:
            found = disk_place.open(read_only=read_only).load("run-1")
        except keepstep.KeepstepError as error:
            return type(error).__name__, str(error)
        return found and (found.next, found.step)

    assert in_child(load_as_nobody) == ("review", 1)
    for path in [disk_place.path, *within, disk_place.folder]:
        before = tree(disk_place.folder)
        mode = path.stat().st_mode
        path.chmod(0)
        error, message = in_child(load_as_nobody)
        path.chmod(mode)
        assert error in ("CannotOpen", "StoreFailed")
        assert "ermission" in message
        assert tree(disk_place.folder) == before
