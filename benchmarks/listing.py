"""Listing runs: the first page, filtered pages and the inbox, in a file with many runs and in one with few."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.row import Row, at_most
from benchmarks.setting import Setting
from keepstep.log.fold import thaw
from keepstep.log.grow import Draft, grow
from keepstep.log.records import Asked, Claimed, Released
from keepstep.runtime.clock import SystemClock
from keepstep.runtime.inline import drive
from keepstep.store.base import Append, Committed, Decision, Query, View
from keepstep.store.sqlite import SqliteStore

FEW = 1000
MANY = 100_000
AT_ONCE = 500
PAGE = 50
ORDER = 777
REPEAT = 50
FLAT = 1.5
"""What counts as flat: one level more in each tree, and pages that are less often in the cache."""

WORKFLOWS = ("refund", "report", "triage", "import")
CUSTOMERS = 2

PAGES: dict[str, dict[str, Any]] = {
    "the first page of runs()": {},
    "a page by workflow and status": {"workflow": "report", "status": "finished"},
    "a page by status, last changed first": {"status": "ready", "order": "changed"},
    "a page by a tag that every second run has": {"tags": {"customer": "customer-1"}},
    "a page by a tag that one run has": {"tags": {"order": ORDER}},
    "a page by workflow, status and tag": {"workflow": "report", "status": "ready", "tags": {"customer": "customer-1"}},
}
NOWHERE = {"workflow": "report", "tags": {"follows": "refund"}}
"""What many runs have, but none has together."""
ASKING = 50
STEP = len(WORKFLOWS) * 2
"""Of so many runs that follow each other, the first is one that nobody finished."""
INBOX = "the inbox's rows"


def rows(setting: Setting) -> Iterator[Row]:
    """Milliseconds with many runs, and how much longer than with few."""
    many = setting.times(MANY, 10_000)
    few, lots = (setting.rounds(1, pages, runs=runs, repeat=setting.times(REPEAT, 20))[0] for runs in (FEW, many))
    for name in PAGES:
        yield Row(f"{name}, {many:,} runs", f"{lots[name]:.2f} ms", lots[name], "ms", at_most(5))
    yield Row(
        f"{INBOX}: {ASKING} runs that ask, among {many:,}", f"{lots[INBOX]:.2f} ms", lots[INBOX], "ms", at_most(5)
    )
    worst = max((*PAGES, INBOX), key=lambda one: lots[one] / few[one])
    yield Row(
        f"  the worst of these over the same page of {FEW:,} runs",
        f"{few[worst]:.2f} to {lots[worst]:.2f} ms",
        lots[worst] / few[worst],
        "times",
        at_most(FLAT),
    )
    yield Row(
        "  an empty page, for marks that many runs have but none together",
        f"{lots['nowhere']:.2f} ms",
        lots["nowhere"],
        "ms",
    )


def pages(folder: str, runs: int, repeat: int) -> dict[str, float]:
    """The median milliseconds of each page."""
    import keepstep

    path = Path(folder) / "runs.db"
    asyncio.run(_fill(path, runs))
    drive(_ask(path, runs))
    with keepstep.open(path) as store:
        millis = {name: _page(store.runs, wanted, repeat) for name, wanted in {**PAGES, "nowhere": NOWHERE}.items()}
    return {**millis, INBOX: _inbox(path, repeat)}


def _page(runs: Callable[..., Any], wanted: dict[str, Any], repeat: int) -> float:
    page = runs(**wanted, limit=PAGE)
    full = 0 if wanted is NOWHERE else 1 if "order" in wanted.get("tags", {}) else PAGE
    assert len(page.items) == full, "the page is not full"
    assert all(_fits(head, wanted) for head in page.items), "the page holds what was not asked for"
    return _millis(lambda: runs(**wanted, limit=PAGE), repeat)


def _inbox(path: Path, repeat: int) -> float:
    store = SqliteStore(str(path), SystemClock())
    query = Query(order="asking")
    found = drive(store.rows(query, None, PAGE)).rows
    assert len(found) == ASKING, "the inbox is not full"
    assert {row.fold.status for row in found} == {"paused", "running", "ready"}, "they are not in every status"
    millis = _millis(lambda: drive(store.rows(query, None, PAGE)), repeat)
    drive(store.close())
    return millis


def _millis(look: Callable[[], Any], repeat: int) -> float:
    seconds: list[float] = []
    for _ in range(repeat):
        start = perf_counter()
        look()
        seconds.append(perf_counter() - start)
    return median(seconds) * 1e3


def _fits(head: Any, wanted: dict[str, Any]) -> bool:
    tags = wanted.get("tags", {}).items()
    names = [name for name in ("workflow", "status") if name in wanted]
    return all(getattr(head, name) == wanted[name] for name in names) and tags <= dict(head.tags).items()


async def _fill(path: Path, runs: int) -> None:
    """Runs of four workflows; half of them finished, each with the tag of one of two customers and one of its own."""
    import keepstep

    async with keepstep.open_async(path) as store:
        for first in range(0, runs, AT_ONCE):
            await asyncio.gather(*(_one(store, number) for number in range(first, first + AT_ONCE)))


async def _one(store: Any, number: int) -> None:
    workflow = WORKFLOWS[number % len(WORKFLOWS)]
    async with store.run(f"run-{number:06}", workflow) as run:
        await run.tag(customer=f"customer-{number // 8 % CUSTOMERS}", order=number, follows=workflow)
        await run.save({"number": number}, next="work")
        if number // 4 % 2:
            await run.finish(number)


async def _ask(path: Path, runs: int) -> None:
    """Some of the runs ask, all over the file: while they wait, while they run, and while they could go on."""
    store = SqliteStore(str(path), SystemClock())
    for number in range(ASKING):
        run_id = f"run-{number * runs // ASKING // STEP * STEP:06}"
        [outcome] = await store.commit([Decision(run_id, partial(_asking, status=number % 3))])
        assert isinstance(outcome, Committed), outcome
    await store.close()


def _asking(view: View, status: int) -> Append:
    assert view.row is not None
    row = thaw(view.row)
    asked = Asked(gate="gate", key=bytes(16))
    claimed = Claimed(owner="nobody", epoch=row.epoch + 1)
    records = ((asked,), (claimed, asked), (claimed, asked, Released()))[status]
    drafts = [Draft(one) for one in records]
    grown = grow(row, view.run_id, drafts, now_us=view.now_us, batch=bytes(8), epoch=row.epoch, holder=True)
    return Append(view.run_id, view.row.seq, view.row.digest, grown.records, row, grown.ledger)
