"""Lists are compared with those of the stores that have no index."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import apsw
import pytest

from keepstep.errors import BadInput
from keepstep.log.fold import thaw
from keepstep.log.grow import Draft
from keepstep.log.records import Asked, Claimed, Finished, Released, Slept, Tagged
from keepstep.store.base import Append, Query, View
from keepstep.store.listing import is_due, page, place
from keepstep.store.sqlite import search
from tests.store.sqlite.growing import Log, TurnedClock, claiming, done, opened

KEY = bytes(16)
TAGS = (1, 1.0, True, 0, False, "1", "a\0b", 2**63, float(2**63), 2**64 - 1, float("inf"), "é", -5)
RUNS = 160


def some_run(dice, clock, n):
    """A run somewhere in its life."""
    log = Log(f"{dice.choice(['a', 'ab', 'é', 'z/'])}{n}", clock)
    parent = f"a{dice.randrange(9)}" if dice.random() < 0.3 else None
    drafts = []
    if dice.random() < 0.6:
        names = dice.sample(["x", "y", "z"], dice.randint(1, 3))
        drafts.append(Draft(Tagged(tags={name: dice.choice(TAGS) for name in names})))
    fate = dice.randrange(8)
    if fate:
        drafts.append(Draft(Claimed(owner=f"o{dice.randrange(4)}", epoch=1)))
    until_us = dice.choice([None, 0, clock.us + 10**9])
    if fate == 1:
        drafts += [Draft(Slept(key=KEY, until_us=until_us)), Draft(Released(reason="waits"))]
    elif fate == 2:
        drafts += [Draft(Asked(gate="g", key=KEY, until_us=until_us)), Draft(Released(reason="waits"))]
    elif fate == 3:
        drafts.append(Draft(Finished()))
    elif fate in (4, 5):  # it asks while it runs, or was left
        drafts += [Draft(Asked(gate="g", key=KEY, until_us=until_us)), Draft(Released())][: fate - 3]
    clock.us += dice.choice([0, 0, 1, 1000])
    first = log.opened(dice.choice(["", "w", "v"]), parent_run=parent)
    clock.us += dice.choice([0, 1])
    return [first, log.append(*drafts)] if drafts else [first]


def some_query(dice):
    tags = {name: dice.choice(TAGS) for name in dice.sample(["x", "y", "z"], dice.choice([0, 0, 0, 1, 1, 2, 3]))}
    statuses = ("ready", "running", "paused", "sleeping", "finished", "nonsense", "ready running")
    return Query(
        workflow=dice.choice([None, None, "", "w", "none"]),
        status=tuple(dice.sample(statuses, dice.choice([0, 0, 1, 2]))),
        tags=tags,
        parent=dice.choice([None, None, None, "a1", "a2"]),
        starts_with=dice.choice(["", "", "a", "ab", "é", "z/", "q"]),
        order=dice.choice(["created", "changed", "asking"]),
        newest_first=dice.random() < 0.5,
        due=dice.random() < 0.3,
    )


@pytest.fixture(scope="module", params=[1, 2])
def filled(tmp_path_factory, request):
    """A store with many runs, and its clock."""
    dice, clock = random.Random(request.param), TurnedClock()
    store = opened(tmp_path_factory.mktemp("lists") / "runs.db", clock)
    for owner in ("o1", "o2"):
        done(store.enlist(owner, 1.0 if owner == "o2" else 10**6))
    for n in range(RUNS):
        done(store.commit(some_run(dice, clock, n)))
    clock.us += 10**6
    yield store, clock, dice
    done(store.close())


def everything(store):
    return done(store.rows(Query(), None, RUNS + 1)).rows


@pytest.mark.parametrize("gathered_max", [0, 5, 500])
def test_every_list_is_the_one_that_sorting_everything_gives(filled, monkeypatch, gathered_max):
    monkeypatch.setattr(search, "GATHERED_MAX", gathered_max)
    store, clock, dice = filled
    rows = everything(store)
    assert len(rows) == RUNS
    for _ in range(300):
        query, limit = some_query(dice), dice.choice([1, 3, 50])
        wanted = page(rows, query, None, 1000, clock.us).rows
        found, cursor = [], None
        for _ in range(limit * RUNS):
            part = done(store.rows(query, cursor, limit))
            found += part.rows
            cursor = part.next
            if cursor is None:
                break
            assert len(part.rows) == limit
        assert found == list(wanted), query


@pytest.mark.parametrize("workflows", [None, ["w"], ["w", "", "w"], ["none"], []])
def test_a_claim_looks_at_the_due_runs_oldest_change_first(filled, workflows):
    store, clock, _ = filled
    seen = []
    assert done(store.claim(workflows, 10**6, lambda view: seen.append(view.run_id))) == []
    due = [row for row in everything(store) if is_due(row, clock.us)]
    due.sort(key=lambda row: place(row, "changed"))
    assert seen == [row.run_id for row in due if workflows is None or row.fold.workflow in workflows]


def test_a_claim_claims_as_many_as_it_may(store):
    done(store.enlist("me", 60))
    done(store.commit([Log(f"r{n}").opened() for n in range(5)]))

    def decide(view: View) -> Append | None:
        return claiming(view.run_id, "me").decide(view)

    assert [one.append.run_id for one in done(store.claim(None, 2, decide))] == ["r0", "r1"]
    assert [one.append.run_id for one in done(store.claim(["w"], 9, decide))] == ["r2", "r3", "r4"]
    assert done(store.claim(None, 9, decide)) == []
    assert {row.fold.owner for row in everything(store)} == {"me"}


def test_a_claim_passes_over_what_is_refused_and_takes_no_run_twice(store, monkeypatch):
    monkeypatch.setattr("keepstep.store.sqlite.store.CLAIM_PAGE", 2)
    done(store.commit([Log(f"r{n}").opened() for n in range(7)]))

    def decide(view: View) -> Append | None:
        if view.run_id in ("r0", "r1", "r3"):
            return (
                claiming(view.run_id, "me").decide(view._replace(holder=view.holder)) if view.run_id == "r3" else None
            )
        return claiming(view.run_id, "not enlisted").decide(view)

    claimed = [one.append.run_id for one in done(store.claim(None, 9, decide))]
    assert claimed == ["r2", "r3", "r4", "r5", "r6"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"workflow": "w"},
        {"status": ("paused",)},
        {"tags": {"x": 1}},
        {"tags": {"x": 1, "y": 1}},
        {"starts_with": "asks"},
        {"parent": "a"},
    ],
)
def test_finding_the_runs_that_ask_takes_as_many_steps_however_many_others_there_are(store, path, more):
    def add(name, n, *drafts):
        log = Log(f"{name} {n}")
        tagged = Draft(Tagged(tags={"x": 1, "y": 1}))
        done(store.commit([log.opened(parent_run="a"), log.append(tagged, *drafts)]))

    def steps(newest_first):
        connection: Any = apsw.Connection(str(path))
        taken = count()
        connection.set_progress_handler(lambda: next(taken) < 0, 1)
        asked = search.wanted(Query(order="asking", newest_first=newest_first, **more), None, 0, lambda *_: True)
        assert len(search.find(connection.cursor(), asked, 50)) == 5
        connection.set_progress_handler(None)
        connection.close()
        return next(taken)

    for n in range(5):
        add("asks", n, Draft(Asked(gate="g", key=KEY)))
    few = [steps(True), steps(False)]
    for n in range(300):
        add("quiet", n)

    assert [steps(True), steps(False)] == few


def test_a_tag_that_changes_is_found_by_its_new_value_only(store):
    log = Log("r")
    done(store.commit([log.opened(), log.append(Draft(Tagged(tags={"a": 1, "b": True, "nan": float("nan")})))]))

    def found(**tags):
        return [row.run_id for row in done(store.rows(Query(tags=tags), None, 9)).rows]

    assert found(a=1) == found(a=1.0) == found(b=True) == found(a=1, b=True) == ["r"]
    assert found(a=True) == found(b=1) == found(nan=float("nan")) == found(c=1) == []
    done(store.commit([log.append(Draft(Tagged(tags={"a": None, "b": 2**65 % 2**64 + 2**63})))]))
    assert found(a=1) == found(b=True) == []
    assert found(b=2**63) == ["r"]


@pytest.mark.parametrize("cursor", ["", "x", "é", "W10=", "eyJhIjoxfQ=="])
def test_a_cursor_from_elsewhere_is_refused(store, cursor):
    with pytest.raises(BadInput, match="cursor"):
        done(store.rows(Query(), cursor, 5))


def test_a_cursor_of_another_order_is_refused(store):
    done(store.commit([Log(f"r{n}").opened() for n in range(3)]))
    cursor = done(store.rows(Query(), None, 1)).next
    with pytest.raises(BadInput):
        done(store.rows(Query(order="changed"), cursor, 1))
    with pytest.raises(BadInput):
        done(store.rows(Query(newest_first=False), cursor, 1))


def test_a_list_shows_who_holds_a_run(store, clock):
    done(store.enlist("o", 5))
    done(store.commit([Log("r").opened(owner="o")]))
    thawed = thaw(done(store.view("r")).row)
    assert thawed.owner == "o"
    [row] = done(store.rows(Query(), None, 5)).rows
    assert (row.holder.owner, row.holder.stands) == ("o", True)
    clock.us += 5_000_000
    [row] = done(store.rows(Query(due=True), None, 5)).rows
    assert row.holder.stands is False
