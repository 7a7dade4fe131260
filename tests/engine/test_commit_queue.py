"""The commit queue: who leads, what becomes of an interrupted leader, and that nobody suffers for another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

import keepstep
from keepstep.errors import StoreFailed
from keepstep.runtime.inline import InlinePromise, InlineRuntime, drive
from keepstep.store import commit_queue
from keepstep.store.base import Busy, Committed, Entry, Outcome
from keepstep.store.commit_queue import CommitQueue
from keepstep.store.memory import MemoryStore
from keepstep.testing import Clock
from tests.engine.hooked_store import PATIENCE_SECONDS, HookedStore, Work, kinds, lose_reply, until
from tests.places import Place

Store = keepstep.Store


def waiting_in(store: Store) -> int:
    """How many items wait for the commit under way."""
    return len(store._session.engine.queue._waiting)


def ids(count: int, start: int = 0) -> list[str]:
    return [f"r-{number:02}" for number in range(start, start + count)]


def save_calls(store: Store, run_ids: Sequence[str]) -> list[Any]:
    return [lambda run_id=run_id: store.save(run_id, {"id": run_id}, workflow="w") for run_id in run_ids]


def all_there(store: Store, run_ids: Sequence[str]) -> bool:
    """Every one of these runs was saved once, and nothing else."""
    return all(
        store.load(run_id).state == {"id": run_id} and store.look(run_id).seq == 2  # pyright: ignore[reportOptionalMemberAccess]
        for run_id in run_ids
    )


# --- together --------------------------------------------------------------------------------------------------------


def test_whatever_waits_while_a_commit_is_under_way_goes_into_the_next(
    place: Place, hooked: HookedStore, holder: Store
):
    work = Work()
    held = hooked.hold()
    work.start(*save_calls(holder, ["first"]))
    held.arrived()
    work.start(*save_calls(holder, ids(40)))
    until(lambda: waiting_in(holder) == 40)
    held.let_go()
    assert work.ended() == [1] * 41
    assert [len(batch) for batch in hooked.commits] == [1, 40]
    assert all_there(holder, ids(40))


def test_the_lead_is_handed_from_one_who_waits_to_the_next(
    place: Place, hooked: HookedStore, holder: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(commit_queue, "ENTRIES_MAX", 3)
    work = Work()
    held = hooked.hold()
    work.start(*save_calls(holder, ["first"]))
    held.arrived()
    work.start(*save_calls(holder, ids(20)))
    until(lambda: waiting_in(holder) == 20)
    held.let_go()
    assert work.ended() == [1] * 21
    assert [len(batch) for batch in hooked.commits] == [1, 3, 3, 3, 3, 3, 3, 2]
    assert sorted(run_id for batch in hooked.commits[1:] for run_id in batch) == ids(20)


def test_nothing_is_left_behind_in_the_queue(place: Place, holder: Store):
    work = Work()
    work.start(*save_calls(holder, ids(20)))
    work.ended()
    queue = holder._session.engine.queue
    assert queue.idle
    assert queue.lead(), "somebody still leads though nobody waits"
    queue.follow()


def test_a_thread_that_was_told_while_it_took_the_lead_hands_it_on():
    """Told between looking and leading: it must not go away with the lead."""
    promise = InlinePromise()

    class ToldLate(CommitQueue):
        asked = 0

        def lead(self) -> bool:
            self.asked += 1
            if self.asked == 1:
                return False
            promise.set("told")
            return super().lead()

    queue = ToldLate(MemoryStore(Clock()), threading.RLock())
    assert drive(InlineRuntime(Clock()).wait(queue, promise)) == "told"
    assert queue.lead(), "the lead was taken away"


# --- failures --------------------------------------------------------------------------------------------------------


def test_one_bad_append_harms_no_other(place: Place, hooked: HookedStore, holder: Store):
    def refuse_bad(batch: Sequence[Entry]) -> None:
        if any(one.run_id == "bad" for one in batch):
            raise StoreFailed("the disk does not like this run")

    work = Work()
    held = hooked.hold()
    work.start(*save_calls(holder, ["first"]))
    held.arrived()
    work.start(
        *save_calls(holder, ids(5)), lambda: holder.save("bad", {}, workflow="w"), *save_calls(holder, ids(5, 5))
    )
    until(lambda: waiting_in(holder) == 11)
    hooked.before(*[refuse_bad] * 20)
    held.let_go()
    outcomes = work.ended()
    assert isinstance(outcomes.pop(6), StoreFailed)
    assert outcomes == [1] * 11
    assert all_there(holder, ids(10))
    assert holder.load("bad") is None


def test_a_batch_whose_reply_is_lost_is_written_once(place: Place, hooked: HookedStore, holder: Store):
    work = Work()
    holder.save("noted", {}, workflow="w")
    with holder.run("held", "w") as run:
        held = hooked.hold()
        work.start(*save_calls(holder, ["first"]))
        held.arrived()
        work.start(
            *save_calls(holder, ids(5)),
            lambda: run.save({"n": 1}),
            lambda: holder.note("noted", "once"),
            lambda: holder.claim("claimed", "w").epoch,
        )
        until(lambda: waiting_in(holder) == 8)
        hooked.after(lambda batch, outcomes: None, lose_reply)
        held.let_go()
        assert work.ended() == [1, 1, 1, 1, 1, 1, 1, None, 1]
        assert hooked.operations
    assert all_there(holder, ids(5))
    assert kinds(place, "held") == ["opened", "claimed", "saved", "released"]
    assert kinds(place, "noted") == ["opened", "saved", "noted"]
    assert kinds(place, "claimed") == ["opened", "claimed"]


def test_a_run_that_is_locked_elsewhere_goes_alone_in_the_next_round(place: Place, hooked: HookedStore, holder: Store):
    busy = {"r-01", "r-03"}

    class Locked:
        """Says of two runs that they are locked, as a store does that skips them: they were not written."""

        def __init__(self) -> None:
            self.commit, hooked.store.commit = hooked.store.commit, self

        async def __call__(self, batch: Sequence[Entry]) -> list[Outcome]:
            skipped = {one.run_id for one in batch} & busy if len(batch) > 1 else set[str]()
            written = iter(await self.commit([one for one in batch if one.run_id not in skipped]))
            return [Busy() if one.run_id in skipped else next(written) for one in batch]

    Locked()
    work = Work()
    held = hooked.hold()
    work.start(*save_calls(holder, ["first"]))
    held.arrived()
    for number, call in enumerate(save_calls(holder, ids(5)), 1):
        work.start(call)
        until(lambda number=number: waiting_in(holder) == number)
    held.let_go()
    assert work.ended() == [1] * 6
    assert hooked.commits == [["first"], ids(5), ["r-01"], ["r-03"]]
    assert all_there(holder, ids(5))


def test_a_run_that_stays_locked_keeps_no_other_from_being_written(hooked: HookedStore, holder: Store):
    locked = {"locked"}
    commit = hooked.store.commit

    async def skip(batch: Sequence[Entry]) -> list[Outcome]:
        skipped = {one.run_id for one in batch} & locked
        written = iter(await commit([one for one in batch if one.run_id not in skipped]))
        return [Busy() if one.run_id in skipped else next(written) for one in batch]

    hooked.store.commit = skip
    work = Work()
    work.start(*save_calls(holder, ["locked"]))
    until(lambda: ["locked"] in hooked.commits)

    for call in save_calls(holder, ids(5)):
        work.start(call)
    until(lambda: all(holder.load(one) is not None for one in ids(5)))

    locked.clear()
    assert work.ended() == [1] * 6
    assert all_there(holder, ["locked", *ids(5)])


def test_a_holders_append_that_meets_a_lock_is_written_once(place: Place, hooked: HookedStore, holder: Store):
    with holder.run("r", "w") as run:
        hooked.before(lambda batch: None)
        commit = hooked.store.commit
        answers: list[list[Outcome]] = [[Busy()], [Busy()]]

        async def locked_twice(batch: Sequence[Entry]) -> list[Outcome]:
            return answers.pop() if answers else await commit(batch)

        hooked.store.commit = locked_twice
        assert run.save({"n": 1}) == 1
        hooked.store.commit = commit
    assert kinds(place, "r") == ["opened", "claimed", "saved", "released"]


# --- leaders that are interrupted ------------------------------------------------------------------------------------


in_threads = pytest.mark.parametrize("place", ["memory-sync", "dir-sync", "sqlite-sync"], indirect=True)
"""On an event loop one task leads, and Ctrl-C does not meet it."""


@in_threads
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_leader_loses_nothing_and_hangs_nobody(
    place: Place, hooked: HookedStore, holder: Store, when: str
):
    work = Work()
    with holder.run("r", "w") as run:
        held = hooked.hold()
        work.start(lambda: run.note("first"))
        held.arrived()

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        if when == "before":
            hooked.before(interrupt)
        else:
            hooked.after(lambda batch, outcomes: None, interrupt)
        work.start(lambda: run.save({"n": 1}), lambda: run.note("second"))
        until(lambda: len(run._claim.writer._pending) == 2)
        work.start(*save_calls(holder, ids(6)))
        work.start(lambda: holder.claim("claimed", "w").epoch)
        until(lambda: waiting_in(holder) == 7)
        held.let_go()
        outcomes = work.ended()
        assert sum(isinstance(one, KeyboardInterrupt) for one in outcomes) == 1
        told = [one for one in outcomes if not isinstance(one, KeyboardInterrupt)]
        assert set(told) == {1, None}
        run.note("last")  # whatever the interrupted one left behind is written by now
    for run_id in ids(6):
        assert holder.verify(run_id).ok
    assert all_there(holder, ids(6))
    found = kinds(place, "r")
    assert (found.count("saved"), found.count("noted")) == (1, 3)
    was_cut_off = isinstance(outcomes[-1], KeyboardInterrupt)  # the claim led: given back, or never written
    fits = [["opened", "claimed", "released"], []] if was_cut_off else [["opened", "claimed"]]
    assert kinds(place, "claimed") in fits


@in_threads
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_save_that_was_interrupted_is_written_with_the_next_one(
    place: Place, hooked: HookedStore, holder: Store, when: str
):
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with holder.run("r", "w") as run:
        if when == "before":
            hooked.before(interrupt)
        else:
            hooked.after(interrupt)
        with pytest.raises(KeyboardInterrupt):
            run.save({"n": 1})
        assert run.save({"n": 2}) == 2
    assert kinds(place, "r") == ["opened", "claimed", "saved", "saved", "released"]
    assert [holder.at("r", step=step).state for step in (1, 2)] == [{"n": 1}, {"n": 2}]


@in_threads
def test_a_save_that_was_interrupted_is_written_when_the_run_is_left(place: Place, hooked: HookedStore, holder: Store):
    def interrupt(batch: Sequence[Entry]) -> None:
        raise KeyboardInterrupt

    hooked.before(lambda batch: None, interrupt)
    with pytest.raises(KeyboardInterrupt), holder.run("r", "w") as run:
        run.save({"n": 1})
    assert kinds(place, "r") == ["opened", "claimed", "saved", "released"]
    assert holder.look("r").status == "ready"


@in_threads
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_claim_that_was_interrupted_is_given_back(place: Place, hooked: HookedStore, holder: Store, when: str):
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    holder.save("r", {"n": 1}, workflow="w")
    if when == "before":
        hooked.before(interrupt)
    else:
        hooked.after(interrupt)
    with pytest.raises(KeyboardInterrupt):
        holder.claim("r")
    assert holder.look("r").status == "ready"
    with holder.run("r") as run:
        assert run.state == {"n": 1}


@in_threads
def test_a_claimless_save_that_was_interrupted_is_written_at_the_latest_when_the_store_is_closed(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    def interrupt(batch: Sequence[Entry]) -> None:
        raise KeyboardInterrupt

    hooked.before(interrupt)
    with pytest.raises(KeyboardInterrupt):
        holder.save("r", {"id": "r"}, workflow="w")
    holder.close()
    assert all_there(other, ["r"])


# --- tasks that are cancelled ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "dir", "sqlite"])
def test_a_cancelled_caller_leaves_and_its_commit_still_ends(kind: str, tmp_path: Any):
    place = Place(kind, "async", tmp_path)
    hooked = HookedStore(place)

    async def story() -> None:
        async with keepstep.open_async(hooked, clock=place.clock) as store:  # pyright: ignore[reportArgumentType]
            async with store.run("r", "w") as run:
                held = hooked.hold()
                task = asyncio.create_task(run.save({"n": 1}))
                await asyncio.to_thread(held.arrived)
                task.cancel()
                held.let_go()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await run.save({"n": 2}) == 2
            assert (await store.at("r", step=1)).state == {"n": 1}

    asyncio.run(asyncio.wait_for(story(), PATIENCE_SECONDS))
    place.close()


@pytest.mark.parametrize("kind", ["memory", "dir", "sqlite"])
def test_whoever_cancels_every_task_of_the_loop_hangs_nobody_and_doubles_nothing(kind: str, tmp_path: Any):
    place = Place(kind, "async", tmp_path)
    hooked = HookedStore(place)

    async def story() -> None:
        opening = keepstep.open_async(hooked, clock=place.clock)  # pyright: ignore[reportArgumentType]
        async with opening as store, store.run("r", "w") as run:
            await store.save("s", {}, workflow="w")
            held = hooked.hold()
            mine = asyncio.all_tasks()
            saving = asyncio.create_task(run.save({"n": 1}))
            noting_elsewhere = asyncio.create_task(store.note("s", "once"))
            await asyncio.to_thread(held.arrived)
            noting = asyncio.create_task(run.note("waits behind"))
            await asyncio.sleep(0)
            for task in asyncio.all_tasks() - mine - {saving, noting, noting_elsewhere}:
                assert task.cancel()
            for _ in range(30):  # time enough to do something wrong, such as reading what is not there yet
                await asyncio.to_thread(threading.get_ident)
            held.let_go()
            assert await saving == 1
            await noting
            await noting_elsewhere
            assert hooked.commits[-2:] == [["r", "s"], ["r"]]
            assert (await store.look("s")).seq == 3
            assert await run.save({"n": 2}) == 2

    asyncio.run(asyncio.wait_for(story(), PATIENCE_SECONDS))
    assert kinds(place, "r") == ["opened", "claimed", "saved", "noted", "saved", "released"]
    place.close()


# --- closing ---------------------------------------------------------------------------------------------------------


def test_closing_a_store_waits_for_what_is_being_written(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    work = Work()
    held = hooked.hold()
    work.start(*save_calls(holder, ["first"]))
    held.arrived()
    work.start(*save_calls(holder, ids(4)))
    until(lambda: waiting_in(holder) == 4)
    closing = Work()
    closing.start(holder.close)
    held.let_go()
    closing.ended()
    assert work.ended() == [1] * 5
    assert all_there(other, ids(4))


def test_outcomes_are_values():
    assert Committed(None, 5) == Committed(None, 5)
    assert Busy() == Busy()
