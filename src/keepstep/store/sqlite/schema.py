"""What is in the file: told apart from other SQLite files, and made when it is empty."""

from __future__ import annotations

from pathlib import Path

from keepstep.errors import CannotOpen, NewerFormat, NotAStore
from keepstep.store.sqlite.connect import PAGE_BYTES
from keepstep.store.sqlite.driver import Connection
from keepstep.store.sqlite.statements import schema, sql

APPLICATION_ID = 0x6B737470  # "kstp"
FORMAT = 1
"""The version of everything that stands in schema/*.sql and of what the columns hold."""


def is_store(connection: Connection, path: str, *, read_only: bool) -> bool:
    """Whether the file holds a store that we can use; False when it is empty, raises when it is something else."""
    application, version, filled = _marks(connection)
    if application == APPLICATION_ID:
        if version > FORMAT and not read_only:
            raise NewerFormat(
                f"{path} was written by a newer keepstep (format {version}; this one writes {FORMAT}). "
                "Upgrade keepstep, or open it with read_only=True."
            )
        return True
    if Path(path).stat().st_size == 1:  # SQLite takes it for an empty one
        raise NotAStore(f"{path} holds a single byte, so it is not a store of keepstep. Name another path.")
    if application or version or filled:
        raise NotAStore(f"{path} is a SQLite file, but not a store of keepstep. Name another path.")
    return False


def prepare(connection: Connection, path: str) -> None:
    """Turn the log on, and make the tables if there are none; whoever calls has the turn."""
    if connection.readonly("main"):
        raise CannotOpen(f"Cannot write {path}: permission denied. Check who owns it, or open with read_only=True.")
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # takes effect only while the file is empty
    mode = connection.execute("PRAGMA journal_mode = WAL").get
    if mode != "wal":
        raise CannotOpen(f"Cannot write {path}: it has no place for SQLite's log (journal mode {mode!r}). Move it.")
    if not is_store(connection, path, read_only=False):
        _create(connection)


def _create(connection: Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in schema():
            connection.execute(statement)
        connection.execute(sql("insert_meta"), ("format", str(FORMAT)))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _marks(connection: Connection) -> tuple[int, int, bool]:
    """Whose file it is, in which version, and whether there is anything in it: all as of one moment.

    Another process may be making the store just now.
    """
    if connection.in_transaction:
        return _read_marks(connection)
    connection.execute("BEGIN")
    try:
        return _read_marks(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _read_marks(connection: Connection) -> tuple[int, int, bool]:
    application, version = _number(connection, "application_id"), _number(connection, "user_version")
    # Reads one entry at most: an empty file has none.
    filled = application != APPLICATION_ID and connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get
    return application, version, bool(filled)


def _number(connection: Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").get)
