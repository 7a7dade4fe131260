"""For the tests of the store in a directory."""

from __future__ import annotations

from pathlib import Path

from keepstep.store.base import Append, Committed, Entry, Store
from keepstep.store.conformance.bench import drive
from keepstep.store.conformance.pen import Pen
from keepstep.store.conformance.turned_clock import TurnedClock
from keepstep.store.directory import DirectoryStore
from keepstep.store.directory.files import Files
from keepstep.store.directory.names import file_name


def opened(path: Path, *, read_only: bool = False, files: Files | None = None) -> DirectoryStore:
    store = DirectoryStore(path, TurnedClock(), read_only=read_only, files=files)
    drive(store.open())
    return store


def write(store: Store, *entries: Entry) -> list[Append | None]:
    outcomes = drive(store.commit(entries))
    assert all(isinstance(one, Committed) for one in outcomes), outcomes
    return [one.append for one in outcomes if isinstance(one, Committed)]


def run_with(store: Store, saves: int, run_id: str = "r", body: bytes = b"state") -> Pen:
    """A run of 1 + saves records, each a line of its own."""
    pen = Pen(run_id, TurnedClock())
    write(store, pen.open())
    for _ in range(saves):
        write(store, pen.save(body))
    return pen


def run_file(store: DirectoryStore, run_id: str = "r") -> Path:
    return store.path / "runs" / file_name(run_id)


def tree(path: Path) -> dict[str, bytes]:
    """Every file and what it holds."""
    return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}
