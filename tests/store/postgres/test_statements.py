"""Every statement that the store sends finds what it looks for by an index, however many runs there are."""

from __future__ import annotations

import re
from itertools import product
from typing import Any, LiteralString, cast

import psycopg
import pytest

from keepstep.errors import NotAllowed
from keepstep.log.records import Pruned
from keepstep.store.base import Decision, Query
from keepstep.store.postgres import PostgresStore, statements
from keepstep.store.postgres.port import Step
from tests.store.postgres.growing import Pen, Recording, TurnedClock, done, fill, opened, outcomes

LARGE = {"runs", "records", "tags", "ledger", "tombstones"}
NO_PLAN = ("BEGIN", "COMMIT", "ROLLBACK", "LISTEN", "CREATE", "ALTER")
KEY = b"d" * 16


def use(store: PostgresStore) -> None:
    """Everything that a store does, once in every way that makes another statement."""
    pen = Pen("fresh", TurnedClock())
    outcomes(store, pen.open("flow 1"))
    outcomes(store, pen.save(label="a")._replace(moved=False))
    outcomes(store, pen.append(Pruned(dropped=[(1, 1)]), dropped=[(1, 1)], renewed=[(2, b"new")]))
    outcomes(store, Decision("run 17", lambda view: None), Decision("not there", lambda view: None))
    done(store.view("run 5"))
    for bodies, newest_first in product((True, False), (True, False)):
        done(store.records("run 5", bodies=bodies, newest_first=newest_first, limit=5))
    done(store.pick("run 5", [1, 2]))
    done(store.effects("run 5"))
    done(store.effects("run 5", [KEY]))
    done(store.enlist("somebody", 30))
    done(store.renew("owner 3", 30))
    done(store.claim(None, 4, refuse))
    done(store.claim(["flow 1", "flow 2"], 4, refuse))
    done(store.delete("run 99", lambda view: None))
    done(store.changes(None, 0))
    done(store.size("run 5"))  # that of the whole store means the whole table
    done(store.retire("somebody"))
    for query in queries():
        page = done(store.rows(query, None, 20))
        if page.next is not None:
            done(store.rows(query, page.next, 20))


def refuse(view: Any) -> None:
    raise NotAllowed("not now", view.run_id)


def queries() -> list[Query]:
    """Of each kind of list some."""
    some: list[dict[str, Any]] = [
        {},
        {"workflow": "flow 3"},
        {"status": ("failed",)},
        {"status": ("ready", "running"), "workflow": "flow 3"},
        {"tags": {"team": "3"}},
        {"tags": {"number": "400"}},
        {"tags": {"team": "0", "number": "400"}, "status": ("finished",)},
        {"parent": "run 7"},
        {"parent": "run 7", "workflow": "flow 3"},
        {"starts_with": "run 77"},
        {"due": True},
        {"due": True, "workflow": "flow 3"},
        {"due": True, "status": ("sleeping",), "tags": {"team": "1"}},
    ]
    return [
        Query(**one, order=order, newest_first=first) for one in some for order in ORDERS for first in (True, False)
    ]


ORDERS: tuple[Any, ...] = ("created", "changed", "asking")


@pytest.fixture
def sent(postgres_url, request):
    """Every statement that a store sends which has many runs; and a connection to explain them on."""
    done(opened(postgres_url).close())
    fill(postgres_url, request.param)
    port = Recording()
    store = PostgresStore(postgres_url, port=port)
    use(store)
    done(store.close())
    with psycopg.connect(postgres_url.partition("?")[0], cursor_factory=psycopg.ClientCursor) as connection:
        yield list({one.statement: one for one in port.sent}.values()), connection


def explain(connection: Any, step: Step) -> list[dict[str, Any]]:
    """Every node of a statement's plan."""
    text = cast("LiteralString", f"EXPLAIN (FORMAT JSON) {step.statement}")
    [(plans,)] = connection.execute(text, step.values or None).fetchall()

    def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
        return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]

    return nodes(plans[0]["Plan"])


def check(sent: tuple[list[Step], Any]) -> None:
    steps, connection = sent
    planned = 0
    for step in steps:
        if step.statement.startswith(NO_PLAN):
            continue
        scanned = [
            node["Relation Name"]
            for node in explain(connection, step)
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE
        ]
        planned += 1
        assert scanned == [], step.statement
    assert planned > 60


@pytest.mark.parametrize("sent", [20_000], indirect=True)
def test_no_statement_reads_a_whole_table(sent):
    check(sent)


@pytest.mark.soak
@pytest.mark.parametrize("sent", [1_000_000], indirect=True)
def test_no_statement_reads_a_whole_table_of_a_million_runs(sent):
    check(sent)


def test_nothing_that_every_save_changes_is_indexed():
    indexes = "".join(path.read_text() for path in (statements.FOLDER / "schema" / "1").glob("index_*.sql"))
    assert not re.search(r"\b(seq|digest|row)\b", indexes)
    changed = statements.FOLDER.joinpath("append.sql").read_text().partition("SET ")[2].partition("FROM")[0]
    assert set(re.findall(r"(\w+) = ", changed)) == {"seq", "digest", "row"}


def test_a_save_leaves_the_indexes_alone(store, postgres_url):
    pen = Pen("r", TurnedClock())
    outcomes(store, pen.open())
    before = updates_of(postgres_url)
    for _ in range(20):
        outcomes(store, pen.save()._replace(moved=False))
    done(store.close())  # a session has told its counts when it has ended

    after = before
    while after[0] < before[0] + 20:
        after = updates_of(postgres_url)

    assert (after[0] - before[0], after[1] - before[1]) == (20, 20)


def updates_of(url: str) -> tuple[int, int]:
    """How often a run's row was changed, and how often without touching an index."""
    counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = %s AND relname = 'runs'"
    with psycopg.connect(url.partition("?")[0]) as connection:
        [found] = connection.execute(counts, (url.rpartition("=")[2],)).fetchall()
    return found


def test_every_file_is_one_statement_that_is_used():
    sources = "".join(path.read_text() for path in statements.FOLDER.parent.glob("*.py"))
    for path in [*statements.FOLDER.glob("*.sql"), *(statements.FOLDER / "parts").glob("*.sql")]:
        name = path.stem.removeprefix("where_")
        assert f'"{name}"' in sources or f'"where_{name}"' in sources, name
        assert ";" not in "".join(line for line in path.read_text().splitlines() if not line.startswith("--"))


def test_every_key_begins_with_the_run():
    for table in ("records", "ledger", "tags", "tombstones"):
        text = (statements.FOLDER / "schema" / "1" / f"create_{table}.sql").read_text()
        assert re.search(r"PRIMARY KEY \(run\b|run bytea NOT NULL PRIMARY KEY", text), table
