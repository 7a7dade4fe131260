"""How a connection to the file is made, for each of its uses.

A store opened for reading never writes nor creates a file, also where it could:

- while writers have it open (or died with it open), its `-wal` and `-shm` are there, and are read (`readonly_shm`);
- otherwise the file alone is the whole store, and is read as it is (`immutable`). Should a writer come meanwhile, that
  is seen after the call, and the call is made again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import apsw

from keepstep.errors import CannotOpen
from keepstep.store.sqlite.driver import Connection, connect

PAGE_BYTES = 4096
"""Of a file of 1 KB bodies: 4 KB pages take 1.35 times the payload, 8 KB pages 1.17 times, and make commits of many
runs about a quarter slower. Fixed for a store when it is made."""
BUSY_MS = 10_000
"""How long SQLite waits for a lock; only those who do not queue for their turn make it wait."""
CHECKPOINT_PAGES = 500
"""So many pages of log are taken over into the file at once, by the commit that fills them: it takes milliseconds.
Few, because a log is quicker written anew than made longer: with 2000, a run's first steps take a fifth longer."""
CHECKPOINT_PAGES_CROWD = 2000
"""The same where many runs are written at once, which write the same pages again and again: a tenth quicker."""
LOG_BYTES_KEPT = 16 << 20
"""What the log may keep on the disk after a large transaction."""

_ALWAYS = ("PRAGMA trusted_schema = OFF", "PRAGMA temp_store = MEMORY", "PRAGMA cell_size_check = ON")
_WRITER = (
    "PRAGMA secure_delete = ON",  # what is deleted or pruned is overwritten; costs a commit nothing measurable
    f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}",
    f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}",
)
_MAC = ("PRAGMA fullfsync = ON", "PRAGMA checkpoint_fullfsync = ON")


def connect_writer(path: str, vfs: str | None) -> Connection:
    """A connection whose commits survive a loss of power."""
    return _connect(path, apsw.SQLITE_OPEN_READWRITE, vfs, ("PRAGMA synchronous = FULL", *_full(), *_WRITER))


def connect_reader(path: str, vfs: str | None) -> Connection:
    """A connection that reads beside the writers."""
    return _connect(path, apsw.SQLITE_OPEN_READWRITE, vfs, ("PRAGMA query_only = ON", *_WRITER[1:]))


def connect_read_only(path: str, vfs: str | None) -> Connection:
    """A connection that leaves no trace on the disk."""
    if not has_log(path):
        return _connect(_uri(path, "immutable=1"), apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, vfs)
    if not Path(f"{path}-shm").exists():
        raise CannotOpen(
            f"Cannot open {path} for reading: its newest changes are in {path}-wal, and {path}-shm is missing. "
            "Open it for writing once, or make copies with a backup."
        )
    return _connect(_uri(path, "readonly_shm=1"), apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, vfs)


def has_log(path: str) -> bool:
    """Whether there may be changes that are not in the file itself yet."""
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def fingerprint(path: str) -> tuple[int, int, int] | None:
    """What differs once a file without a log has been written to; None while it has a log."""
    if has_log(path):
        return None
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _connect(path: str, flags: int, vfs: str | None, pragmas: Sequence[str] = ()) -> Connection:
    connection = connect(path, flags, vfs)
    try:
        connection.set_busy_timeout(BUSY_MS)
        for pragma in (*_ALWAYS, *pragmas):
            connection.execute(pragma)
    except BaseException:
        connection.close(force=True)
        raise
    return connection


def _uri(path: str, option: str) -> str:
    return f"file:{quote(path)}?mode=ro&{option}"


def _full() -> Sequence[str]:
    return _MAC if sys.platform == "darwin" else ()
