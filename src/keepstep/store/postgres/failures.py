"""What PostgreSQL says, in keepstep's words. None of these shows what was sent: it may be a user's."""

from __future__ import annotations

import psycopg

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

BUSY = ("40001", "40P01", "55P03", "57014")
"""Serialization, deadlock, a lock that did not come free, cancelled by somebody."""
FULL = ("53100", "53400")
RIGHTS = ("42501",)
MISSING = ("42P01", "3F000")
EXISTS = ("42P07", "42710", "42P06")
READ_ONLY = ("25006",)
TOO_LARGE = ("54000", "22001")
DAMAGED = ("XX001", "XX002")

MADE = "23505"
"""A row is there already."""

ENDED = ("57P01", "57P02", "57P03", "57P05", "25P03", "25P04")
"""The session is over: the server stops, was stopped, starts, or gave us up."""
REFUSED = ("28000", "28P01", "3D000", "42704")
"""Trying again would not help: wrong password, no such role or database."""


class CreatedMeanwhile(StoreFailed):
    """A run that was to be created was created by somebody else just now; nothing was written."""


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, so that what was sent may or may not have been done."""
    code = error.sqlstate
    return (
        code in ENDED or (code or "").startswith("08") or (code is None and isinstance(error, psycopg.OperationalError))
    )


def is_refused(error: psycopg.Error) -> bool:
    """Whether a connection would be refused again, however often it is tried."""
    return error.sqlstate in REFUSED or any(
        sign in str(error) for sign in ("password", "pg_hba.conf", "does not exist")
    )


def is_starting(error: psycopg.Error) -> bool:
    """Whether a server is there that will take connections in a moment, or did until a moment ago."""
    return any(sign in str(error) for sign in ("starting up", "shutting down", "not yet accepting", "in recovery mode"))


def translate(error: Exception, url: str) -> KeepstepError:
    """The error to raise for one that a statement met; nothing was written."""
    if isinstance(error, UnicodeEncodeError):
        return BadInput(f"A text is not valid Unicode ({error}); nothing was written. Give it without lone surrogates.")
    code = error.sqlstate if isinstance(error, psycopg.Error) else None
    said = _said(error)
    if code in EXISTS:
        return NotAStore(f"The schema at {url} holds other tables ({said}). Name another with ?schema=NAME.")
    if code == MADE:
        return CreatedMeanwhile(f"{url}: {said}; nothing was written.")
    if code in BUSY:
        return StoreBusy(f"Others kept {url} locked too long ({said}); nothing was written. Try again.")
    if code in FULL:
        return StoreFull(f"No space is left at {url}; nothing was written. Free some and try again.")
    if code in RIGHTS:
        return ReadOnly(f"The role may not do that at {url} ({said}). Grant it what docs/howto/postgresql.md lists.")
    if code in READ_ONLY:
        return ReadOnly(f"{url} is a server that only reads ({said}). Name the one that writes, or use read_only=True.")
    if code in MISSING:
        return StoreFailed(f"The tables at {url} are gone ({said}). Restore a backup, or open the store again.")
    if code in TOO_LARGE:
        return TooLarge(f"A record, an id or a tag is larger than PostgreSQL takes ({said}); nothing was written.")
    if code in DAMAGED:
        return Damaged(f"{url} is damaged: {said}. Restore a backup; do not write to it.")
    return StoreFailed(f"{url}: {type(error).__name__}: {said}. Nothing is known to be written; see the cause.")


def translate_lost(error: Exception, url: str) -> StoreFailed:
    """The error to raise when the connection was lost after something had been sent that may not be sent again."""
    return StoreFailed(f"The connection to {url} was lost ({_said(error)}). Whether it was written is not known.")


def translate_unreachable(error: Exception, url: str, seconds: float) -> StoreFailed:
    """The error to raise when there is no connection to be had."""
    return StoreFailed(f"{url} cannot be reached, tried for {seconds:g} s ({_said(error)}); nothing was written.")


def translate_opening(error: Exception, url: str) -> KeepstepError:
    """The error to raise when a store cannot be opened."""
    code = error.sqlstate if isinstance(error, psycopg.Error) else None
    if isinstance(error, psycopg.Error) and (code is None or is_refused(error)):
        return CannotOpen(f"Cannot open {url}: {_said(error)}. Check the URL, the password, and whether it runs.")
    return translate(error, url)


def _said(error: Exception) -> str:
    """What the server or the driver said, on one line and without the details, which show values."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    lines = (said or str(error)).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
