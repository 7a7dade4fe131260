from __future__ import annotations

import re

import apsw
import pytest

from keepstep.store.sqlite import statements

WHOLE = {"count_runs", "weigh_records"}
"""Statements that mean the whole table."""


@pytest.fixture(scope="module")
def connection():
    connection = apsw.Connection(":memory:")
    for statement in statements.schema():
        connection.execute(statement)
    yield connection
    connection.close()


def plan(connection, statement):
    names = set(re.findall(r":(\w+)", statement))
    values = dict.fromkeys(names) if names else (None,) * len(set(re.findall(r"\?\d+", statement)))
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


@pytest.mark.parametrize(("name", "statement"), sorted(set(statements.every())))
def test_no_statement_reads_a_whole_table_or_sorts(connection, name, statement):
    steps = plan(connection, statement)
    scans = [
        step for step in steps if step.startswith("SCAN") and "CONSTANT ROW" not in step and "(subquery" not in step
    ]
    assert bool(scans) is (name in WHOLE)
    assert not [step for step in steps if "TEMP B-TREE" in step or "AUTOMATIC" in step]


def test_the_variants_are_all_of_the_listing_statements():
    names = [name for name, _ in statements.every()]
    assert names.count("list_by_status") == names.count("gather_due") == 8
    assert names.count("read_heads") == 2


def test_runs_that_ask_are_walked_along_the_index_that_has_no_others(connection):
    for name, statement in statements.every():
        if name == "list_asking":
            step, *_ = plan(connection, statement)
            assert step.startswith("SEARCH runs USING INDEX runs_by_asking ")


def test_nothing_that_every_save_changes_is_indexed(connection):
    indexed = set()
    for (index,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'runs'"):
        indexed |= {row[2] for row in connection.execute(f"PRAGMA index_info({index})")}
    assert not indexed & {"seq", "digest", "row"}
    assert set(re.findall(r"(\w+) = \?", statements.sql("append").partition("WHERE")[0])) == {"seq", "digest", "row"}


def test_every_table_is_strict(connection):
    tables = connection.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'").fetchall()
    assert {name for name, strict in tables if not strict} == {"sqlite_schema"}


def test_every_file_is_one_statement_that_is_used():
    sources = "".join(path.read_text() for path in statements.FOLDER.parent.glob("*.py"))
    for path in statements.FOLDER.glob("*.sql"):
        assert f'"{path.stem}"' in sources
        assert ";" not in statements.sql(path.stem)
