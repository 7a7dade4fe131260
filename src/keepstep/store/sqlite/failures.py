"""What SQLite says, in keepstep's words."""

from __future__ import annotations

import errno

import apsw

from keepstep.errors import (
    BadInput,
    CannotOpen,
    Damaged,
    KeepstepError,
    NotAStore,
    ReadOnly,
    StoreBusy,
    StoreFailed,
    StoreFull,
    TooLarge,
)  # fmt: skip

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def translate(error: Exception, path: str, system_errno: int = 0) -> KeepstepError:
    """The error to raise for one of SQLite's, or of the operating system's."""
    if isinstance(error, apsw.FullError) or system_errno in NO_SPACE or _errno(error) in NO_SPACE:
        return StoreFull(f"No space is left for {path}; nothing was written. Free some and try again.")
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusy(f"Others kept {path} locked too long; nothing was written. Try again.")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return Damaged(f"{path} is damaged: {error}. Restore a backup; do not write to it.")
    if isinstance(error, apsw.ReadOnlyError):
        return ReadOnly(f"{path} cannot be written ({error}). Check its permissions and those of its folder.")
    if isinstance(error, apsw.TooBigError):
        return TooLarge(f"A record is larger than SQLite takes; nothing was written to {path}.")
    if isinstance(error, UnicodeEncodeError):
        return BadInput(f"A text is not valid Unicode ({error}); nothing was written. Give it without lone surrogates.")
    return StoreFailed(f"{path}: {type(error).__name__}: {error}. Nothing is known to be written; see the cause.")


def translate_opening(error: Exception, path: str, system_errno: int = 0) -> KeepstepError:
    """The error to raise when a store cannot be opened."""
    if isinstance(error, apsw.NotADBError):
        return NotAStore(f"{path} is not a SQLite file, so not a store of keepstep. Name another path.")
    if isinstance(error, apsw.CantOpenError | apsw.PermissionsError | apsw.AuthError | apsw.ReadOnlyError):
        return CannotOpen(
            f"Cannot open {path}: {error}. Check its permissions and those of its folder, or open with read_only=True."
        )
    return translate(error, path, system_errno)


def _errno(error: Exception) -> int | None:
    return error.errno if isinstance(error, OSError) else None
