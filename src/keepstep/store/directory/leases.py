"""Who counts as alive: a lock that a process holds for its life, and a lease that it renews."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from keepstep.store.base import Holder
from keepstep.store.directory.files import Files, asking
from keepstep.store.directory.names import stem
from keepstep.store.owner_locks import OwnerLocks

_SUFFIX = ".json"


class _Lease(msgspec.Struct):
    owner: str
    until_us: int


class Leases:
    """The owners of a store. A lease is never synced: after a loss of power nobody is alive."""

    def __init__(self, files: Files, folder: Path, locks_folder: Path) -> None:
        self._files = files
        self._folder = folder
        self._locks = OwnerLocks(str(locks_folder))

    def enlist(self, owner: str, now_us: int, until_us: int) -> None:
        """Make an owner known, and forget those that died long ago."""
        self._sweep(now_us)
        self._locks.take(owner)
        self._write(owner, until_us)

    def renew(self, owner: str, until_us: int) -> bool:
        """Prolong a lease; False when there is none."""
        if self._read(self._path(owner)) is None:
            return False
        self._write(owner, until_us)
        return True

    def retire(self, owner: str) -> None:
        """Take the lease and the lock away."""
        self._remove(self._path(owner))
        self._locks.drop(owner)

    def holder(self, owner: str, now_us: int) -> Holder:
        """How an owner stands."""
        lease = self._read(self._path(owner))
        until_us = lease.until_us if lease is not None else 0
        return Holder(owner, until_us, stands=until_us > now_us and self._locks.held(owner) is not False)

    def close(self) -> None:
        """Let go of the locks: an owner that did not retire is found to be gone."""
        self._locks.close()

    def after_fork(self) -> None:
        """Leave the locks to the parent."""
        self._locks.forget()

    def _sweep(self, now_us: int) -> None:
        """Forget the dead."""
        with asking(self._folder, "read"):
            names = self._files.names(self._folder)
        alive: list[str] = []
        for path in (self._folder / name for name in names if name.endswith(_SUFFIX)):
            lease = self._read(path)
            if lease is None or self._is_dead(lease, now_us):
                self._remove(path)
            else:
                alive.append(lease.owner)
        self._locks.clear(keep=alive)

    def _is_dead(self, lease: _Lease, now_us: int) -> bool:
        held = self._locks.held(lease.owner)
        return held is False or (held is None and lease.until_us <= now_us)

    def _path(self, owner: str) -> Path:
        return self._folder / (stem(owner) + _SUFFIX)

    def _read(self, path: Path) -> _Lease | None:
        with asking(path, "read"):
            text = self._files.load(path)
        if text is None:
            return None
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(text, type=_Lease)
        return None  # torn by a loss of power, which nobody survived

    def _write(self, owner: str, until_us: int) -> None:
        path = self._path(owner)
        with asking(path, "write"):
            self._files.put(path, msgspec.json.encode(_Lease(owner, until_us)) + b"\n", durable=False)

    def _remove(self, path: Path) -> None:
        with asking(path, "remove"), suppress(FileNotFoundError):
            self._files.unlink(path)
