"""Every call of the public face, with the type of what it gives, as a type checker of a user sees it.

`make check` runs the type checker over this file; `test_uses.py` runs the functions, so that they are true as well.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, assert_type

import keepstep
from keepstep.api.async_store import AsyncBlock
from keepstep.api.opening import Opening
from keepstep.api.store import Block
from keepstep.testing import Clock, FaultyStore, SimulatedCrash, crash_everywhere

TagValue = str | int | float | bool


@keepstep.register
@dataclass
class Point:
    x: int = 0


@keepstep.tool
def add(x: int, y: int = 1) -> int:
    return x + y


def void(done: keepstep.Done) -> None:
    assert_type(done.key, str)
    assert_type(done.args, list[Any])
    assert_type(done.idempotency_key, str)


@keepstep.tool(
    name="pay",
    key=lambda name, **_: name,
    target="the bank",
    undo=void,
    idempotent=False,
    reconcile=lambda doubt: keepstep.Happened("found"),
    not_done=[ValueError],
    unsure="raise",
    min_lease=1.0,
)
def pay(name: str, *, amount: int) -> Point:
    assert_type(keepstep.effect(), keepstep.Effect)
    return Point(amount)


async def fetch(name: str) -> bytes:
    return name.encode()


# --- opening ---------------------------------------------------------------------------------------------------------


def opens(folder: Path) -> None:
    assert_type(keepstep.open(folder / "runs.db"), keepstep.Store).close()
    assert_type(
        keepstep.open(
            f"dir:{folder}/runs",
            read_only=False,
            lease=timedelta(seconds=30),
            interrupts=(TimeoutError, KeyboardInterrupt),
            registry=keepstep.Registry(),
            limits=keepstep.Limits(state_bytes=1 << 20),
            redact=lambda value, what: None if what == "note" else value,
            clock=Clock(),
        ),
        keepstep.Store,
    ).close()
    with keepstep.open("memory:", lease=30, clock=None, limits=None) as store:
        assert_type(store, keepstep.Store)
        assert_type(store.url, str)
        assert_type(store.read_only, bool)


async def opens_async(folder: Path) -> None:
    opening = assert_type(keepstep.open_async(folder / "runs.db", lease="10s"), Opening)
    async with opening as store:
        assert_type(store, keepstep.AsyncStore)
        assert_type(store.url, str)
        assert_type(store.read_only, bool)
    store = await keepstep.open_async("memory:", clock=Clock())
    assert_type(store, keepstep.AsyncStore)
    assert_type(await store.close(), None)


# --- a run to work on ------------------------------------------------------------------------------------------------


def works(store: keepstep.Store) -> None:
    assert_type(store.run("r", "w", wait="1s", state=Point, version=2, lift={1: dict}), Block)
    with store.run("r", workflow="w") as run:
        assert_type(run, keepstep.Run)
        assert_type(run.save([1, 2]), int)
        assert_type(run.save({"n": 1}, "next", step=3, label="first"), int)
        assert_type(run.note("half"), None)
        assert_type(run.tag({"customer": "ada"}, level=3, old=None), None)
        attributes(run)
        assert_type(run.finish({"sum": 3}), None)
    claimed = store.claim("s", "w", wait=timedelta(seconds=1))
    assert_type(claimed, keepstep.Run)
    assert_type(claimed.close(), None)
    with assert_type(store.claim_due("w", limit=2), list[keepstep.Run])[0] as due:
        assert_type(due, keepstep.Run)
    assert_type(store.carry(lambda run: run.state, "s", wait=0.0), keepstep.Outcome)


async def works_async(store: keepstep.AsyncStore) -> None:
    assert_type(store.run("r", "w", wait="1s", state=Point, version=2, lift={1: dict}), AsyncBlock)
    async with store.run("r", workflow="w") as run:
        assert_type(run, keepstep.AsyncRun)
        assert_type(await run.save({"n": 1}, "next", step=3, label="first"), int)
        assert_type(await run.note("half"), None)
        assert_type(await run.tag({"customer": "ada"}, level=3, old=None), None)
        attributes(run)
        assert_type(await run.finish({"sum": 3}), None)
    claimed = await store.claim("s", "w", wait=timedelta(seconds=1))
    assert_type(claimed, keepstep.AsyncRun)
    assert_type(await claimed.close(), None)
    async with assert_type(await store.claim_due("w", limit=2), list[keepstep.AsyncRun])[0] as due:
        assert_type(due, keepstep.AsyncRun)

    async def carried(run: keepstep.AsyncRun) -> Any:
        return run.state

    assert_type(await store.carry(carried, "s"), keepstep.Outcome)
    assert_type(await store.carry(lambda run: run.step, "s"), keepstep.Outcome)


def attributes(run: keepstep.Run | keepstep.AsyncRun) -> None:
    assert_type(run.id, str)
    assert_type(run.workflow, str)
    assert_type(run.state, Any)
    assert_type(run.step, int | None)
    assert_type(run.next, str | None)
    assert_type(run.label, str | None)
    assert_type(run.tags, Mapping[str, TagValue])
    assert_type(run.epoch, int)
    assert_type(run.deaths, int)
    assert_type(run.is_open, bool)
    assert_type(run.paused, bool)
    assert_type(run.cancelled, bool)


# --- calls to the outside --------------------------------------------------------------------------------------------


def calls(store: keepstep.Store) -> None:
    with store.run("calls", "w") as run:
        assert_type(run.memo(add, 1, y=2), int)
        assert_type(run.once(add, 1), int)
        assert_type(run.once(pay, "ada", amount=1), Point)
        using = run.using(
            key="call-1",
            target="card",
            undo=void,
            idempotent=True,
            reconcile=finds,
            not_done=(ValueError,),
            unsure="ask",
            min_lease=0.5,
        )
        assert_type(using, keepstep.Using)
        assert_type(using.once(pay, "ada", amount=1), Point)
        assert_type(using.memo(add, 1), int)
        assert_type(run.gather(lambda: run.memo(add, 2), lambda: run.memo(add, 3)), list[Any])
    wrong_calls(run)
    assert_type(store.effects("calls"), list[keepstep.EffectLook])
    assert_type(store.mark("calls", "call-2", tool="pay", target=None, reversible=True, workflow="w"), bool)
    with suppress(keepstep.NotInDoubt):
        assert_type(store.settle("calls", "call-1", happened=True, result=1, by="ann"), None)


def wrong_calls(run: keepstep.Run) -> None:
    with suppress(keepstep.WrongUse, TypeError):
        run.memo(add, "x")  # pyright: ignore[reportArgumentType]
    with suppress(keepstep.WrongUse, TypeError):
        run.once(pay, "ada")  # pyright: ignore[reportCallIssue]
    with suppress(keepstep.WrongUse, TypeError):
        run.using(key="k").once(add, 1, z=2)  # pyright: ignore[reportCallIssue]


def finds(doubt: keepstep.Doubt) -> keepstep.Happened | None:
    assert_type(doubt.key, str)
    assert_type(doubt.idempotency_key, str)
    assert_type(doubt.args, Sequence[Any])
    return keepstep.Happened(1)


def ledger(look: keepstep.EffectLook, effect: keepstep.Effect) -> None:
    assert_type(look.status, str)
    assert_type(look.ended, datetime | None)
    assert_type(look.is_memo, bool)
    assert_type(effect.attempt, int)
    assert_type(effect.idempotency_key, str)
    assert_type(effect.lease_left(), float)


async def calls_async(store: keepstep.AsyncStore) -> None:
    async with store.run("calls", "w") as run:
        assert_type(await run.memo(fetch, "x"), bytes)
        assert_type(await run.memo(add, 1, y=2), int)
        assert_type(await run.once(fetch, "x"), bytes)
        assert_type(await run.once(pay, "ada", amount=1), Point)
        using = run.using(key="call-1", target="card", idempotent=True, not_done=[ValueError], min_lease=1)
        assert_type(using, keepstep.AsyncUsing)
        assert_type(await using.once(fetch, "x"), bytes)
        assert_type(await using.memo(add, 1), int)
        assert_type(await run.gather(run.memo(fetch, "y"), run.memo(add, 3)), list[Any])
    assert_type(await store.effects("calls"), list[keepstep.EffectLook])
    assert_type(await store.mark("calls", "call-2", tool="pay"), bool)
    with suppress(keepstep.NotInDoubt):
        assert_type(await store.settle("calls", "call-1", happened=False), None)


# --- waiting for people, for a time, for messages --------------------------------------------------------------------


def waits(store: keepstep.Store) -> None:
    with store.run("waits", "w") as run:
        approved = run.using(approve="Pay?", expires="1h", default=False, rejected="value")
        assert_type(approved, keepstep.Using)
        assert_type(run.ask("Which?", {"n": int}, expires="1h", default={"n": 1}, key="which"), Any)
    page = assert_type(store.inbox("w", limit=5, cursor=None), keepstep.PageOf[keepstep.GateLook])
    gates(assert_type(store.gate(page.items[0].id), keepstep.GateLook))
    assert_type(store.answer(page.items[0].id, {"n": 2}, by="ann"), keepstep.GateLook)
    with store.run("sleeps", "w") as run:
        assert_type(run.sleep("0s"), None)
        assert_type(run.sleep_until(datetime.now(UTC)), None)
        assert_type(store.send("sleeps", "news", {"n": 1}, id="one"), bool)
        assert_type(run.receive("news", timeout="1s"), Any)
        assert_type(run.confirm("Sure?", expires=timedelta(hours=1), default=True, key="sure"), bool)
    with suppress(keepstep.RunWaiting), store.run("sleeps") as run:
        assert_type(run.ask("All of it?", bool, wait=False), Any)


async def waits_async(store: keepstep.AsyncStore) -> None:
    async with store.run("waits", "w") as run:
        approved = run.using(approve="Pay?", expires="1h", default=False, rejected="value")
        assert_type(approved, keepstep.AsyncUsing)
        assert_type(await run.ask("Which?", {"n": int}, expires="1h", default={"n": 1}, key="which"), Any)
    page = assert_type(await store.inbox("w", limit=5, cursor=None), keepstep.PageOf[keepstep.GateLook])
    assert_type(await store.gate(page.items[0].id), keepstep.GateLook)
    assert_type(await store.answer(page.items[0].id, {"n": 2}, by="ann"), keepstep.GateLook)
    async with store.run("sleeps", "w") as run:
        assert_type(await run.sleep("0s"), None)
        assert_type(await run.sleep_until(datetime.now(UTC)), None)
        assert_type(await store.send("sleeps", "news", {"n": 1}, id="one"), bool)
        assert_type(await run.receive("news", timeout=1), Any)
        assert_type(await run.confirm("Sure?"), bool)


def gates(look: keepstep.GateLook) -> None:
    assert_type(look.schema, Mapping[str, Any])
    assert_type(look.until, datetime | None)
    assert_type(look.by, str | None)


# --- going back, and stopping ----------------------------------------------------------------------------------------


refund = keepstep.Flow("refund", start="assess", version=2, state=None, max_steps=100)


@refund.step(retries=3, backoff=keepstep.Backoff(first=0.1), timeout="1m", name="assess")
def assess(run: keepstep.Run, state: dict[str, Any]) -> str:
    return "settle"


@refund.step
def settle(run: keepstep.Run, state: dict[str, Any]) -> Any:
    return run.finish(1) if state else keepstep.Next(None, 1)


@refund.migrate(from_version=1, steps={"old": "assess"})
def lift(state: dict[str, Any]) -> dict[str, Any]:
    return state


@keepstep.flow("report")
def report(run: keepstep.Run) -> int:
    return 1


def carries(store: keepstep.Store) -> None:
    assert_type(report, keepstep.Flow)
    assert_type(refund.run(store, {"order": 7}, id="flow-0", tags={"a": 1}), keepstep.Outcome)
    assert_type(store.carry(refund, "flow-1", input={"order": 7}), keepstep.Outcome)
    handle = store.start(refund, {"order": 7}, id="flow-1", tags={"a": 1})
    assert_type(handle, keepstep.Handle)
    assert_type(handle.id, str)
    assert_type(handle.look(), keepstep.Look)
    assert_type(handle.status(), str)
    assert_type(handle.result(timeout="1m"), Any)
    assert_type(store.handle("flow-1", refund), keepstep.Handle)
    with suppress(keepstep.NotAllowed):
        assert_type(store.reopen("flow-1", by="ada", reason="mended"), None)
    with store.worker(refund, report, concurrency=2, poll="1s", grace=1, deaths=3, alive=None) as worker:
        assert_type(worker, keepstep.Worker)
        assert_type(worker.carrying, tuple[str, ...])
        assert_type(worker.stop(at_once=True), None)
        assert_type(worker.wait(timeout="1m"), bool)


async def carries_async(store: keepstep.AsyncStore) -> None:
    assert_type(await refund.run(store, {"order": 7}, id="flow-0"), keepstep.Outcome)
    assert_type(await store.carry(refund, "flow-1", input={"order": 7}), keepstep.Outcome)
    handle = await store.start(refund, {"order": 7}, id="flow-1", tags={"a": 1})
    assert_type(handle, keepstep.AsyncHandle)
    assert_type(handle.id, str)
    assert_type(await handle.look(), keepstep.Look)
    assert_type(await handle.status(), str)
    assert_type(await handle.result(timeout="1m"), Any)
    assert_type(store.handle("flow-1", refund), keepstep.AsyncHandle)
    with suppress(keepstep.NotAllowed):
        assert_type(await store.reopen("flow-1", by="ada", reason="mended"), None)
    async with store.worker(refund, report, concurrency=2, poll="1s", grace=1, deaths=3, alive=None) as worker:
        assert_type(worker, keepstep.AsyncWorker)
        assert_type(worker.carrying, tuple[str, ...])
        assert_type(worker.stop(at_once=True), None)
        assert_type(await worker.wait(timeout="1m"), bool)


def goes_back(store: keepstep.Store) -> None:
    with store.run("back", "w") as run:
        run.save({"n": 1})
        run.using(key="paid", undo=void).once(add, 1)
    plan = assert_type(store.plan_rollback("back", 1, keep=["paid"], undo={"add": void}), keepstep.RollbackPlan)
    assert_type(plan.items, Sequence[keepstep.RollbackItem])
    assert_type(plan.possible, bool)
    done = assert_type(store.rollback("back", 1, keep=(), undo=None, undone=[], not_undone=[]), keepstep.RollbackPlan)
    assert_type(done.items[0].outcome, str | None)
    assert_type(store.cancel("back", reason="enough", by="ann"), Literal["cancelled", "requested"])


async def goes_back_async(store: keepstep.AsyncStore) -> None:
    async with store.run("back", "w") as run:
        await run.save({"n": 1})
        await run.using(key="paid", undo=void).once(add, 1)
    assert_type(await store.plan_rollback("back", 1, keep=["paid"], undo={"add": void}), keepstep.RollbackPlan)
    assert_type(await store.rollback("back", 1), keepstep.RollbackPlan)
    assert_type(await store.cancel("back"), Literal["cancelled", "requested"])


# --- everything else -------------------------------------------------------------------------------------------------


def reads(store: keepstep.Store) -> None:
    assert_type(store.save("p", Point(1), "next", step=1, workflow="w", label="one", version=1), int)
    assert_type(store.load("p"), keepstep.Checkpoint | None)
    assert_type(store.look("p", state=Point), keepstep.Look)
    assert_type(store.history("p", newest_first=False, limit=5, cursor=None), keepstep.PageOf[keepstep.CheckpointHead])
    assert_type(store.at("p", step=1), keepstep.Checkpoint)
    assert_type(store.at("p", label="one", state=Point), keepstep.Checkpoint)
    assert_type(store.diff("p", 1, 1, other="p"), list[keepstep.Change])
    page = store.runs("w", status=("ready", "failed"), tags={"level": 3}, order="changed", starts_with="p", limit=5)
    assert_type(page, keepstep.PageOf[keepstep.RunHead])
    assert_type(store.runs(status="ready"), keepstep.PageOf[keepstep.RunHead])
    with suppress(keepstep.BadInput):
        store.runs(order="asking")  # pyright: ignore[reportArgumentType]
    assert_type(store.due("w"), keepstep.PageOf[keepstep.RunHead])
    assert_type(store.children("p"), keepstep.PageOf[keepstep.RunHead])
    assert_type(store.changes(timeout=0), Iterator[int])


def acts(store: keepstep.Store, target: Path) -> None:
    assert_type(store.fork("p", 1, {"x": 2}, "q"), keepstep.Look)
    assert_type(store.fork("r", edits={"n": keepstep.REMOVE}, effects="reuse"), keepstep.Look)
    assert_type(store.fork("r", edits=lambda state: state, id="copy"), keepstep.Look)
    assert_type(store.tag("p", {"customer": "ada"}, level=3, old=None), None)
    assert_type(store.note("p", {"half": True}), None)
    assert_type(store.verify("p", expect=None), keepstep.Verification)
    assert_type(store.size(), keepstep.Size)
    assert_type(store.size("p"), keepstep.Size)
    assert_type(store.backup(target), None)
    moved: list[keepstep.CopiedRun] = []
    elsewhere = target.with_name("moved.db")
    report = keepstep.copy(store, elsewhere, runs=["unknown"], wait="1ms", progress=moved.append)
    assert_type(report, keepstep.CopyReport)
    assert_type(moved[0].why, str | None)
    assert_type(store.backup(os.fspath(target) + "-2"), None)
    assert_type(store.delete("p", force=True), bool)
    assert_type(store.close(), None)


async def reads_async(store: keepstep.AsyncStore) -> None:
    assert_type(await store.save("p", Point(1), "next", step=1, workflow="w", label="one", version=1), int)
    assert_type(await store.load("p"), keepstep.Checkpoint | None)
    assert_type(await store.look("p", state=Point), keepstep.Look)
    assert_type(await store.history("p", limit=5), keepstep.PageOf[keepstep.CheckpointHead])
    assert_type(await store.at("p", step=1), keepstep.Checkpoint)
    assert_type(await store.diff("p", 1, 1, other="p"), list[keepstep.Change])
    page = await store.runs("w", status=["ready"], tags={"level": 3}, order="created", newest_first=False)
    assert_type(page, keepstep.PageOf[keepstep.RunHead])
    assert_type(await store.due("w"), keepstep.PageOf[keepstep.RunHead])
    assert_type(await store.children("p"), keepstep.PageOf[keepstep.RunHead])
    assert_type(store.changes(timeout="0s"), AsyncIterator[int])


async def acts_async(store: keepstep.AsyncStore, target: Path) -> None:
    assert_type(await store.fork("p", 1, {"x": 2}, "q"), keepstep.Look)
    assert_type(await store.fork("r", edits={"n": keepstep.REMOVE}, effects="fresh"), keepstep.Look)
    assert_type(await store.tag("p", {"customer": "ada"}, level=3, old=None), None)
    assert_type(await store.note("p", {"half": True}), None)
    assert_type(await store.verify("p", expect=None), keepstep.Verification)
    assert_type(await store.size("p"), keepstep.Size)
    assert_type(await store.backup(target), None)
    assert_type(await store.delete("p", force=True), bool)
    assert_type(await store.close(), None)


# --- what reading gives ----------------------------------------------------------------------------------------------


def results(look: keepstep.Look, checkpoint: keepstep.Checkpoint, outcome: keepstep.Outcome) -> None:
    head: keepstep.RunHead = look
    line: keepstep.CheckpointHead = checkpoint
    assert_type(head.holder, keepstep.HolderLook | None)
    assert_type(head.parent, keepstep.ParentLook | None)
    assert_type(head.tags, Mapping[str, TagValue])
    assert_type(head.until, datetime | None)
    assert_type(look.state, Any)
    assert_type(look.error, Mapping[str, Any] | None)
    assert_type(line.at, datetime)
    assert_type(line.step, int)
    assert_type(checkpoint.state, Any)
    assert_type(outcome.finished, bool)
    assert_type(outcome.error, BaseException | None)
    assert_type(outcome.gates, Sequence[str])


def weights(verification: keepstep.Verification, size: keepstep.Size, change: keepstep.Change) -> None:
    assert_type(verification.damage, Sequence[keepstep.Damage])
    assert_type(verification.last_good, int | None)
    assert_type(verification.ok, bool)
    assert_type(size.by_key, Mapping[str, int])
    assert_type(change.kind, Literal["added", "removed", "changed"])


def registers() -> None:
    registry = keepstep.Registry()
    assert_type(registry.register(Point, "point"), type[Point])
    assert_type(registry.register_tree(Point), type[Point])
    assert_type(registry.child(), keepstep.Registry)
    assert_type(registry.class_of("point"), type[Any] | None)
    assert_type(registry.tag_of(Point), str | None)
    assert_type(keepstep.Unknown("point", {"x": 1}).tag, str)


def errors(error: keepstep.KeepstepError) -> None:
    match error:
        case keepstep.RunFinished():
            assert_type(error.result, Any)
        case keepstep.RunHeld():
            assert_type(error.owner, str)
        case keepstep.RunWaiting():
            assert_type(error.gates, tuple[str, ...])
        case keepstep.NoSuchRun():
            assert_type(error.near, tuple[str, ...])
        case keepstep.RollbackRefused():
            assert_type(error.hinders, tuple[tuple[str, str, str], ...])
        case keepstep.Rejected():
            assert_type(error.by, str | None)
        case keepstep.EffectInDoubt():
            assert_type(error.call, str)
        case keepstep.RunError():
            assert_type(error.run_id, str)
        case _:
            pass


# --- for tests -------------------------------------------------------------------------------------------------------


def tests(folder: Path, faulty: FaultyStore) -> None:
    clock = Clock()
    assert_type(clock.now_us(), int)
    assert_type(clock.turn(1.5), None)
    with keepstep.open(faulty, clock=clock) as store:
        assert_type(store, keepstep.Store)
    assert_type(faulty.operations, int)
    assert_type(faulty.dead, bool)
    assert issubclass(SimulatedCrash, BaseException)
    place = f"dir:{folder}/crashing"
    assert_type(crash_everywhere(lambda: place, lambda store: store.close(), lambda store: None), int)
