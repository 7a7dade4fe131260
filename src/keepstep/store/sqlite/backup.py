"""A consistent copy of the whole store, made while others write."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import apsw

from keepstep.errors import CannotOpen
from keepstep.store.places import cannot_open, check_place, create_private, sync_folder
from keepstep.store.sqlite.driver import Connection, connect
from keepstep.store.sqlite.failures import translate
from keepstep.store.sqlite.statements import sql


def copy_store(source: Connection, target: Path) -> None:
    """Copy to a new file. It is filled only when the copy is whole; nobody holds a run in it."""
    check_place(target, is_file=True)
    if not create_private(target):
        raise CannotOpen(f"Cannot write a backup to {target}: there is a file already. Name another path.")
    try:
        _fill(source, target)
    except BaseException:
        with suppress(OSError):
            target.unlink()
        raise


def _fill(source: Connection, target: Path) -> None:
    part = target.with_name(f"{target.name}.part")
    if not create_private(part):
        raise CannotOpen(f"Cannot write a backup to {target}: {part} is left from another one. Remove it first.")
    try:
        _copy(source, part)
        part.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise cannot_open(target, error) from error
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            part.with_name(f"{part.name}{end}").unlink(missing_ok=True)


def _copy(source: Connection, part: Path) -> None:
    target = connect(str(part), apsw.SQLITE_OPEN_READWRITE, None)
    try:
        with target.backup("main", source, "main") as backup:
            backup.step(-1)
        # One plain file while it has its passing name; whoever opens it turns the log on again.
        target.execute("PRAGMA journal_mode = DELETE")
        target.execute("PRAGMA synchronous = FULL")
        target.execute(sql("erase_owners"))
    except apsw.Error as error:
        raise translate(error, str(part), target.system_errno) from error
    finally:
        target.close(force=True)
