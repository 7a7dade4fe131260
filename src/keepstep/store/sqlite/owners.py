"""Owners: their rows with their leases, their locks, and what is left of those that are gone."""

from __future__ import annotations

import os
import platform

from keepstep.store.base import Renewal
from keepstep.store.owner_locks import OwnerLocks
from keepstep.store.sealed_rows import read_row
from keepstep.store.sqlite.driver import Cursor
from keepstep.store.sqlite.statements import sql

OWNERS_AT_ONCE = 100


def put_owner(cursor: Cursor, owner: str, now_us: int, until_us: int) -> None:
    """Make an owner known."""
    cursor.execute(sql("put_owner"), (owner, until_us, now_us, platform.node(), os.getpid()))


def renew_owner(cursor: Cursor, owner: str, now_us: int, until_us: int) -> Renewal:
    """Prolong a lease, also one that has passed: its runs are still its own while their rows name it."""
    stands = cursor.execute(sql("renew_owner"), (owner, until_us)).get is not None
    held: dict[str, tuple[int, int]] = {}
    for run_id, seq, digest, sealed in cursor.execute(sql("read_held"), (owner,)).fetchall():
        held[run_id] = (seq, read_row(run_id, seq, digest, sealed).epoch)
    return Renewal(stands, now_us, held)


def erase_owner(cursor: Cursor, owner: str) -> None:
    """Forget an owner; the runs that name it may be claimed."""
    cursor.execute(sql("erase_owner"), (owner,))


def clear_owners(cursor: Cursor, locks: OwnerLocks, now_us: int) -> list[str]:
    """Forget the owners that are gone and hold no run. Returns those that stay, whose lock files must stay too."""
    staying: list[str] = []
    last = ""
    while found := cursor.execute(sql("list_owners"), (last, OWNERS_AT_ONCE)).fetchall():
        for owner, until_us, holds in found:
            if holds or not _is_gone(locks, owner, until_us, now_us):
                staying.append(owner)
            else:
                erase_owner(cursor, owner)
        last = found[-1][0]
    return staying


def _is_gone(locks: OwnerLocks, owner: str, until_us: int, now_us: int) -> bool:
    """A held lock is a living process, also when it is frozen and its lease has passed."""
    held = locks.held(owner)
    return until_us <= now_us if held is None else not held
