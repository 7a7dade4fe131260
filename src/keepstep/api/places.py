"""Which store a URL means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from keepstep.errors import BadInput, CannotOpen
from keepstep.runtime.clock import Clock
from keepstep.store.base import Store as BaseStore

FORMS = "a path or sqlite:PATH for a SQLite file, dir:PATH for a directory, memory: or memory:NAME"


def store_for(place: Any, clock: Clock, *, read_only: bool) -> BaseStore:
    """The store at a place; it is not opened yet."""
    if hasattr(place, "commit") and hasattr(place, "view"):
        return cast(BaseStore, place)
    if isinstance(place, os.PathLike):
        return _sqlite(os.fspath(cast("os.PathLike[str]", place)), clock, read_only=read_only)
    if not isinstance(place, str) or not place or "\0" in place:
        raise BadInput(f"{place!r} names no store; give {FORMS}.")
    scheme, colon, rest = place.partition(":")
    if colon and scheme == "memory":
        return _memory(rest, clock, read_only=read_only)
    if colon and scheme == "dir":
        return _directory(_after_slashes(place, rest), clock, read_only=read_only)
    if colon and scheme == "sqlite":
        return _sqlite(_after_slashes(place, rest), clock, read_only=read_only)
    if "://" in place:
        raise CannotOpen(f"No store is known for {scheme!r} URLs; give {FORMS}.")
    return _sqlite(place, clock, read_only=read_only)


def _after_slashes(place: str, rest: str) -> str:
    """The path in a URL: as it stands, or absolute behind two slashes."""
    if rest.startswith("//") and not rest.startswith("///"):
        raise BadInput(f"{place!r} has two slashes before a relative path; leave them out.")
    return rest.removeprefix("//")


def _path(text: str, form: str) -> Path:
    if not text:
        raise BadInput(f"The path is missing; write {form}.")
    return Path(text).expanduser()


def _memory(name: str, clock: Clock, *, read_only: bool) -> BaseStore:
    from keepstep.store.memory import MemoryStore

    if read_only:
        raise BadInput("A store in memory cannot be opened read-only: nobody else writes it.")
    return MemoryStore(clock, name.removeprefix("//"))


def _directory(path: str, clock: Clock, *, read_only: bool) -> BaseStore:
    from keepstep.store.directory import DirectoryStore

    return DirectoryStore(_path(path, "dir:PATH"), clock, read_only=read_only)


def _sqlite(path: str, clock: Clock, *, read_only: bool) -> BaseStore:
    from keepstep.store.sqlite import SqliteStore

    return SqliteStore(str(_path(path, "a path")), clock, read_only=read_only)
