"""car: paused workflows that are saved, loaded, claimed exactly once, completed, recovered, removed, listed in order.

Gates are tested with gates.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

import keepstep

PAUSED: dict[str, Any] = {
    "prompt": "Which address shall it go to?",
    "fields": [{"name": "street", "required": True}, {"name": "zip", "pattern": r"^\d{5}$"}],
    "output_key": "address",
    "workflow": {"nodes": {"ask": {"type": "human"}, "ship": {"type": "tool"}}, "edges": [["ask", "ship"]]},
    "counters": {"ask": 1, "retries": 0},
}


def at_once(works: list[Callable[[], Any]]) -> list[Any]:
    """What each work gives, all begun at one time, in threads of their own."""
    start = threading.Barrier(len(works))

    def one(work: Callable[[], Any]) -> Any:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(one, works))


def ids(page: keepstep.PageOf[keepstep.RunHead]) -> list[str]:
    """The ids of a list, in its order."""
    return [one.run_id for one in page.items]


# --- save and load ---------------------------------------------------------------------------------------------------


def test_a_paused_workflow_comes_back_whole(place):
    place.open().save("order-7", PAUSED, next="ask", workflow="ship")

    found = place.open().load("order-7")
    assert (found.state, found.next) == (PAUSED, "ask")


def test_counters_go_on_where_they_were(place):
    for number in range(1, 5):
        with place.open().run("order-7", "ship") as run:
            state = run.state or PAUSED
            state["counters"] = {**state["counters"], "ask": number}
            run.save(state, next="ask")

    assert place.open().load("order-7").state["counters"] == {"ask": 4, "retries": 0}


# --- claim -----------------------------------------------------------------------------------------------------------


def claim_each(store: keepstep.Store, run_ids: list[str]) -> list[str]:
    """Try every run, in one order; the ids of those that were won, and are kept."""
    won: list[str] = []
    for run_id in run_ids:
        with suppress(keepstep.RunHeld):
            won.append(store.claim(run_id).id)
    return won


def claim_due(store: keepstep.Store, run_ids: list[str]) -> list[str]:
    """Take what is due until nothing is."""
    won: list[str] = []
    while claimed := store.claim_due("ship", limit=2):
        won += [run.id for run in claimed]
    return won


@pytest.mark.parametrize("way", [claim_each, claim_due])
def test_claiming_is_exactly_once_and_destroys_nothing(place, way):
    stores = [place.open() for _ in range(3)]
    run_ids = [f"order-{number}" for number in range(8)]
    for run_id in run_ids:
        stores[0].save(run_id, {**PAUSED, "id": run_id}, next="ask", workflow="ship")

    # Two threads in each of three processes.
    won = at_once([lambda store=store: way(store, run_ids) for store in stores for _ in range(2)])

    assert Counter(run_id for one in won for run_id in one) == Counter(run_ids)
    for run_id in run_ids:
        look = stores[1].look(run_id)
        assert (look.status, look.epoch, look.next) == ("running", 1, "ask")
        assert look.state == {**PAUSED, "id": run_id}
        assert stores[1].verify(run_id).ok
    assert all(ids(store.due()) == [] for store in stores)


def test_the_second_claimer_is_told_and_the_first_goes_on(place):
    one, two = place.open(), place.open()
    one.save("order-7", PAUSED, next="ask", workflow="ship")
    with one.run("order-7") as run:
        for store in (one, two):
            with pytest.raises(keepstep.RunHeld):
                store.claim("order-7")
            with pytest.raises(keepstep.RunHeld):
                store.save("order-7", {"by": "somebody else"})
        assert run.state == PAUSED
        run.save({**PAUSED, "address": "Main St 1"}, next="ship")

    assert two.load("order-7").next == "ship"


# --- complete --------------------------------------------------------------------------------------------------------


def test_what_is_completed_is_neither_claimed_nor_recovered_again(place):
    store = place.open()
    store.save("order-7", PAUSED, next="ask", workflow="ship")
    with store.run("order-7") as run:
        run.finish({"address": "Main St 1"})
    place.kill(store)

    other = place.open()
    assert other.claim_due(limit=10) == ids(other.due()) == []
    with pytest.raises(keepstep.RunFinished) as caught:
        other.claim("order-7")
    assert caught.value.result == other.look("order-7").result == {"address": "Main St 1"}


def test_a_late_completion_does_not_delete_the_claim_of_the_successor(place):
    frozen, other, third = place.open(), place.open(), place.open()
    late = frozen.claim("order-7", "ship")
    late.save(PAUSED, next="ask")
    place.freeze(frozen)
    successor = other.claim("order-7")

    with pytest.raises(keepstep.ClaimLost):
        late.finish("late")
    late.close()
    frozen.close()

    with pytest.raises(keepstep.RunHeld):
        third.claim("order-7")
    assert successor.state == PAUSED
    successor.save({**PAUSED, "address": "Main St 1"}, next="ship")
    successor.finish("in time")
    assert third.look("order-7").result == "in time"


def test_a_late_completion_does_not_bring_back_what_was_removed(place):
    frozen, other = place.open(), place.open()
    late = frozen.claim("order-7", "ship")
    place.freeze(frozen)
    other.delete("order-7")

    with pytest.raises(keepstep.RunGone):
        late.finish("late")

    assert ids(other.runs()) == []


# --- recovery --------------------------------------------------------------------------------------------------------


def fill(store: keepstep.Store, *run_ids: str) -> list[keepstep.Run]:
    """Runs that are claimed, and have saved."""
    runs = [store.claim(run_id, "ship") for run_id in run_ids]
    for run in runs:
        run.save({**PAUSED, "id": run.id}, next="ask")
    return runs


def test_recovery_takes_exactly_the_orphans_and_nothing_live(place):
    live, dead, frozen = place.open(), place.open(), place.open()
    fill(dead, "dead-1", "dead-2")
    fill(frozen, "frozen-1")
    fill(dead, "dead-done")[0].finish("done")
    place.freeze(frozen)
    place.kill(dead)
    live_runs = fill(live, "live-1", "live-2")
    place.beat(live)
    live.carry(lambda run: 1 // 0, "failed", "ship")
    starting = place.open()

    orphans = set(ids(starting.due("ship")))
    recovered = {run.id: run for run in starting.claim_due("ship", limit=100)}

    assert orphans == set(recovered) == {"dead-1", "dead-2", "frozen-1"}
    for run_id, run in recovered.items():
        assert (run.state, run.next, run.deaths) == ({**PAUSED, "id": run_id}, "ask", 1)
        run.save(PAUSED, next="ship")
    assert ids(starting.due()) == starting.claim_due(limit=100) == []
    for run in live_runs:
        assert run.save(PAUSED, next="ship") == 2
        assert starting.look(run.id).epoch == 1
    assert {one.run_id: one.status for one in starting.runs(status=["finished", "failed"]).items} == {
        "dead-done": "finished",
        "failed": "failed",
    }


def test_each_orphan_is_recovered_by_one_of_those_that_start(place):
    dead = place.open()
    orphans = [f"order-{number}" for number in range(12)]
    fill(dead, *orphans)
    place.kill(dead)
    starting = [place.open() for _ in range(4)]

    recovered = at_once([lambda store=store: claim_due(store, orphans) for store in starting])

    assert Counter(run_id for one in recovered for run_id in one) == Counter(orphans)
    assert all(starting[0].look(run_id).epoch == 2 for run_id in orphans)


def test_sweeping_all_the_time_steals_nothing_from_those_who_live(place):
    live, sweeping = place.open(), place.open()
    (run,) = fill(live, "order-7")

    for number in range(10):
        place.clock.turn(20)
        assert ids(sweeping.due()) == sweeping.claim_due(limit=10) == []
        place.beat(live)
        run.save({**PAUSED, "counters": {"ask": number}}, next="ask")

    assert run.epoch == sweeping.look("order-7").epoch == 1


def test_what_was_left_in_good_order_is_no_orphan_and_can_be_claimed(place):
    store = place.open()
    fill(store, "order-7")[0].close()
    place.kill(store)

    (run,) = place.open().claim_due("ship")

    assert (run.id, run.deaths, run.state["id"]) == ("order-7", 0, "order-7")


# --- remove and list -------------------------------------------------------------------------------------------------


def test_what_is_removed_is_in_no_list(store):
    for number in range(3):
        store.save(f"order-{number}", PAUSED, next="ask", workflow="ship")
        store.tag(f"order-{number}", customer="ada")

    assert [store.delete("order-1"), store.delete("order-1")] == [True, False]

    for page in (store.runs(), store.runs("ship"), store.runs(tags={"customer": "ada"}), store.due()):
        assert set(ids(page)) == {"order-0", "order-2"}


def test_the_list_is_in_order_of_creation_or_of_the_last_change(place):
    store = place.open()
    for name in ("c", "a", "b"):
        store.save(name, PAUSED, next="ask", workflow="ship")
        place.clock.turn(1)
    with store.run("a") as run:
        run.finish()

    assert ids(store.runs()) == ["b", "a", "c"]
    assert ids(store.runs(newest_first=False)) == ["c", "a", "b"]
    assert ids(store.runs(order="changed")) == ["a", "b", "c"]
    created = [one.created for one in store.runs(newest_first=False).items]
    assert created == sorted(created)
    assert len(set(created)) == 3
