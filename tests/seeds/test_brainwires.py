"""brainwires: completed tool calls and side effects, per task; a mark creates the task, and what is done is skipped.

Effects are tested with effects; here the marks are in the state, and in tags.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import keepstep
from tests.crash.processes import Report, Worker

PROCESSES = 4
MARKS = 15
TAGS_EACH = 8
"""A run has 32 tags at most, for four processes."""
CALLS = ("search", "fetch", "charge", "mail")


def mark(store: keepstep.Store, task: str, call: str) -> None:
    """A tool call is done: save it by the plain pair, and again if another process saved in between."""
    while True:
        found = store.load(task)
        done, step = (found.state["done"], found.step) if found else ([], 0)
        try:
            store.save(task, {"done": [*done, call]}, step=step + 1, workflow="task")
        except keepstep.NotAllowed:  # the number is taken: somebody else has marked
            continue
        return


# --- marking ---------------------------------------------------------------------------------------------------------


def test_marking_creates_the_task(place):
    mark(place.open(), "task-1", "search")

    other = place.open()
    assert other.load("task-1").state == {"done": ["search"]}
    assert [one.run_id for one in other.runs("task").items] == ["task-1"]


def test_marking_in_a_block_creates_the_task_without_any_state(place):
    with place.open().run("task-1", "task") as run:
        run.tag(search=True)
        run.note("searched")

    look = place.open().look("task-1")
    assert (look.tags, look.note, look.state, look.step) == ({"search": True}, "searched", None, None)


def test_marks_of_no_workflow_create_nothing_and_say_how(store):
    for verb in (
        lambda: store.save("task-1", {"done": ["search"]}),
        lambda: store.tag("task-1", search=True),
        lambda: store.note("task-1", "searched"),
        lambda: store.claim("task-1"),
    ):
        with pytest.raises(keepstep.NoSuchRun, match="workflow="):
            verb()

    assert store.runs().items == []


def test_each_task_has_its_own_marks(store):
    for task in ("task-1", "task-2"):
        mark(store, task, f"search of {task}")

    assert [store.load(task).state["done"] for task in ("task-1", "task-2")] == [
        ["search of task-1"],
        ["search of task-2"],
    ]


# --- skipping what is done -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lives", [1, 2, 4])
def test_a_resumed_task_skips_what_is_done(place, lives):
    called: list[str] = []
    for life in range(1, lives + 1):
        store = place.open()
        run = store.claim("task-1", "task")
        done = (run.state or {"done": []})["done"]
        for call in CALLS[: life * len(CALLS) // lives]:
            if call not in done:
                called.append(call)
                done.append(call)
                run.save({"done": done}, next="go on")
        place.kill(store)

    assert called == list(CALLS)
    assert place.open().load("task-1").state == {"done": list(CALLS)}


def test_a_mark_of_a_late_process_is_refused_and_the_others_stay(place):
    frozen, other = place.open(), place.open()
    late = frozen.claim("task-1", "task")
    late.save({"done": ["search"]})
    place.freeze(frozen)
    with other.run("task-1") as run:
        run.save({"done": [*run.state["done"], "fetch"]})

    with pytest.raises(keepstep.ClaimLost):
        late.save({"done": ["search", "charge"]})

    assert other.load("task-1").state == {"done": ["search", "fetch"]}


# --- the log of side effects -----------------------------------------------------------------------------------------


def test_the_log_of_side_effects_comes_back_in_order_and_exactly(place):
    began = datetime(2025, 6, 1, 12, tzinfo=UTC)
    log = [
        {"tool": tool, "target": f"orders/{number}", "reversible": tool != "mail", "at": began + timedelta(number)}
        for number, tool in enumerate(CALLS)
    ]
    store = place.open()
    for number in range(len(log)):
        store.save("task-1", {"effects": log[: number + 1]}, workflow="task")

    other = place.open()
    assert other.load("task-1").state == {"effects": log}
    for number in range(len(log)):
        assert other.at("task-1", step=number + 1).state["effects"] == log[: number + 1]
        if number:
            (change,) = other.diff("task-1", number, number + 1)
            assert (change.path, change.kind, change.new) == (f"effects[{number}]", "added", log[number])


# --- four processes --------------------------------------------------------------------------------------------------


def mark_by_the_plain_pair(report: Report, hear: Any, url: str, name: str) -> None:
    """Save every mark without a claim."""
    with keepstep.open(url) as store:
        report("ready")
        hear()
        for number in range(MARKS):
            mark(store, "task-1", f"{name}: {number}")


def mark_in_blocks(report: Report, hear: Any, url: str, name: str) -> None:
    """Claim the task for every mark."""
    with keepstep.open(url) as store:
        report("ready")
        hear()
        for number in range(MARKS):
            with store.run("task-1", "task", wait="1m") as run:
                run.save({"done": [*(run.state or {"done": []})["done"], f"{name}: {number}"]})


def mark_in_async_blocks(report: Report, hear: Any, url: str, name: str) -> None:
    """The same with the async handles."""

    async def work() -> None:
        async with keepstep.open_async(url) as store:
            report("ready")
            hear()
            for number in range(MARKS):
                async with store.run("task-1", "task", wait="1m") as run:
                    await run.save({"done": [*(run.state or {"done": []})["done"], f"{name}: {number}"]})

    asyncio.run(work())


def mark_by_tags(report: Report, hear: Any, url: str, name: str) -> None:
    """Tag the task, whoever has it."""
    with keepstep.open(url) as store:
        report("ready")
        hear()
        for number in range(TAGS_EACH):
            store.tag("task-1", {f"{name}: {number}": True})


def mark_together(url: str, work: Callable[..., None]) -> None:
    """Four processes mark one task, all at once."""
    workers = [Worker(work, url, f"process {number}") for number in range(PROCESSES)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")
    for worker in workers:
        assert worker.rest() == []


@pytest.mark.parametrize("work", [mark_by_the_plain_pair, mark_in_blocks, mark_in_async_blocks])
@pytest.mark.parametrize("kind", ["dir", "sqlite"])
def test_no_mark_of_four_processes_is_lost(kind: str, work: Callable[..., None], folder: Path):
    url = f"{kind}:{folder / 'store'}"

    mark_together(url, work)

    with keepstep.open(url) as store:
        loaded = store.load("task-1")
        assert loaded is not None
        done = loaded.state["done"]
        for process in range(PROCESSES):
            mine = [one for one in done if one.startswith(f"process {process}:")]
            assert mine == [f"process {process}: {number}" for number in range(MARKS)]
        assert len(done) == loaded.step == PROCESSES * MARKS
        assert [store.at("task-1", step=step).state["done"] for step in (1, MARKS)] == [done[:1], done[:MARKS]]
        assert store.verify("task-1").ok


@pytest.mark.parametrize("kind", ["dir", "sqlite"])
def test_no_tag_of_four_processes_is_lost_while_another_has_the_task(kind: str, folder: Path):
    url = f"{kind}:{folder / 'store'}"
    with keepstep.open(url) as store:
        run = store.claim("task-1", "task")

        mark_together(url, mark_by_tags)

        run.save({"done": []})
        marks = {f"process {process}: {number}": True for process in range(PROCESSES) for number in range(TAGS_EACH)}
        assert store.look("task-1").tags == run.tags == marks
        assert store.verify("task-1").ok
