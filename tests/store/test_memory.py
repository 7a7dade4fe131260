"""What only the store in memory does; everything else is in test_conformance.py."""

from __future__ import annotations

import os

import pytest

from keepstep.errors import WrongUse
from keepstep.store.base import Query, Store
from keepstep.store.conformance.bench import drive
from keepstep.store.conformance.pen import Pen
from keepstep.store.conformance.turned_clock import TurnedClock
from keepstep.store.memory import MemoryStore


def store_with_a_run(name: str = "") -> MemoryStore:
    store = MemoryStore(TurnedClock(), name)
    drive(store.open())
    drive(store.commit([Pen("r", TurnedClock()).open()]))
    return store


def ids(store: Store) -> list[str]:
    return [row.run_id for row in drive(store.rows(Query(), None, 9)).rows]


def test_stores_of_one_name_share_their_runs(request) -> None:
    store_with_a_run(request.node.name)
    assert ids(MemoryStore(TurnedClock(), request.node.name)) == ["r"]
    assert ids(MemoryStore(TurnedClock(), request.node.name + "2")) == []


def test_what_has_a_name_outlives_its_stores(request) -> None:
    drive(store_with_a_run(request.node.name).close())
    assert ids(MemoryStore(TurnedClock(), request.node.name)) == ["r"]


def test_without_a_name_a_store_is_private() -> None:
    store = store_with_a_run()
    assert ids(MemoryStore(TurnedClock())) == []
    assert ids(store) == ["r"]


def test_its_url_tells_its_name() -> None:
    assert MemoryStore(TurnedClock(), "jobs").url == "memory:jobs"
    assert MemoryStore(TurnedClock()).url == "memory:"


def test_it_has_no_backup(tmp_path) -> None:
    with pytest.raises(WrongUse, match="no backup"):
        drive(store_with_a_run().backup(str(tmp_path / "copy")))


def test_a_closed_store_says_so() -> None:
    store = store_with_a_run()
    drive(store.close())
    with pytest.raises(WrongUse, match="closed"):
        drive(store.view("r"))


@pytest.mark.parametrize("name", ["", "shared with a child"])
def test_a_child_process_is_told_to_open_another(name) -> None:
    store = store_with_a_run(name)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with pytest.raises(WrongUse, match="forked child"):
                drive(store.view("r"))
            assert ids(MemoryStore(TurnedClock(), name)) == []
            drive(store.close())
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ids(store) == ["r"]
