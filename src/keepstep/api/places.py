"""Which store a URL means."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, cast

from keepstep.errors import BadInput, CannotOpen, shown
from keepstep.runtime.clock import Clock, SystemClock
from keepstep.store.base import Store as BaseStore

FORMS = (
    "a path or sqlite:PATH for a SQLite file, dir:PATH for a directory, postgresql://USER@HOST/DATABASE, "
    "memory: or memory:NAME"
)
POSTGRES = ("postgresql", "postgres")
SCHEMES = ("memory", "dir", "sqlite", *POSTGRES)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+_]+")
"""What can stand before the colon of a URL; a single letter is a drive of Windows, and belongs to a path."""


def store_for(place: Any, clock: Clock, *, read_only: bool) -> BaseStore:
    """The store at a place; it is not opened yet."""
    if not isinstance(read_only, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"read_only= is {shown(read_only)}; give True or False.")
    if hasattr(place, "commit") and hasattr(place, "view"):
        return _given(cast(BaseStore, place), read_only=read_only)
    text = _text(place)
    if text is None:
        raise BadInput(f"{shown(place)} names no store; give {FORMS}.")
    if isinstance(place, os.PathLike):
        return _sqlite(text, clock, read_only=read_only)
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "memory":
        return _memory(rest, clock, read_only=read_only)
    if colon and scheme == "dir":
        return _directory(_after_slashes(text, rest), clock, read_only=read_only)
    if colon and scheme == "sqlite":
        return _sqlite(_after_slashes(text, rest), clock, read_only=read_only)
    if colon and scheme in POSTGRES:
        return _postgres(text, clock, read_only=read_only)
    if "://" in text or text == ":memory:" or (colon and _SCHEME.fullmatch(scheme)):
        raise CannotOpen(f"No store is known for {scheme!r} URLs; {_meant(text, scheme)}give {FORMS}.")
    return _sqlite(text, clock, read_only=read_only)


def _given(store: BaseStore, *, read_only: bool) -> BaseStore:
    """A store that the caller made."""
    if read_only and not store.read_only:
        raise BadInput(f"read_only= is True, and the store object {store.url} writes. Make it read-only itself.")
    return store


def _text(place: Any) -> str | None:
    """The text of a path or URL; None for what is no text, or none that the operating system takes."""
    try:
        text = os.fspath(cast("str | os.PathLike[Any]", place))
        os.fsencode(text)
    except (TypeError, UnicodeEncodeError):
        return None
    return text if isinstance(text, str) and text.strip() and "\0" not in text else None


def _meant(place: str, scheme: str) -> str:
    """What somebody who wrote an unknown scheme may have meant."""
    from difflib import get_close_matches  # only for this error, and slow to import

    word = scheme.lower() or "memory"  # SQLite's own word for it is :memory:
    near = [one for one in SCHEMES if word.startswith(one)] or get_close_matches(word, SCHEMES, 1, 0.6)
    if near:
        return f"did you mean {near[0]}:? For a file of that name write sqlite:{place}. Else "
    return "" if "://" in place else f"for a file of that name write sqlite:{place}. Else "


def _after_slashes(place: str, rest: str) -> str:
    """The path in a URL: as it stands, or absolute behind two slashes."""
    if rest.startswith("//") and not rest.startswith("///"):
        raise BadInput(f"{shown(place)} has two slashes before a relative path; leave them out.")
    return rest.removeprefix("//")


def copy_path(target: Any, url: str) -> str:
    """Where a backup goes: a path, or the URL of a store of the same kind as the one at `url`."""
    path = _text(target)
    if path is None:
        raise BadInput(f"backup() takes the path of the copy, not {shown(target)}.")
    scheme, colon, rest = path.partition(":")
    if colon and scheme in SCHEMES:
        if not url.startswith(f"{scheme}:"):
            raise BadInput(f"A backup of {url} is a store of the same kind, not {shown(path)}; give a path.")
        path = rest.removeprefix("//") if rest.startswith("///") else rest
    return str(_path(path, "the path of the copy"))


def _path(text: str, form: str) -> Path:
    if not text:
        raise BadInput(f"The path is missing; write {form}.")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise CannotOpen(f"Cannot open {text}: nobody of that name has a home here. Write the whole path.") from None


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

    return SqliteStore(str(_path(path, "sqlite:PATH").absolute()), clock, read_only=read_only)


def _postgres(url: str, clock: Clock, *, read_only: bool) -> BaseStore:
    try:
        from keepstep.store.postgres import PostgresStore
    except ImportError as error:
        raise CannotOpen(
            f"A PostgreSQL store needs psycopg ({error}). Install it with: pip install 'keepstep[postgres]'"
        ) from error
    if isinstance(clock, SystemClock):
        # The host's clock is not asked: time is the database's, for which all who share the store agree.
        return PostgresStore(url, read_only=read_only, agree=clock.agree)
    return PostgresStore(url, clock, read_only=read_only)
