"""An OS lock for the life of each owner: a free lock is a dead owner, without waiting for its lease to pass.

There is one file per owner in a folder beside the store. Its owner holds an exclusive `flock` on it from `take` to
`drop`; the operating system lets go of it however the process ends. Others look with a shared lock, so that two who
look at once do not take each other for the owner. Who finds a lock free may clear the file away, under an exclusive
lock; who takes one checks afterwards that the file it locked is still the one in the folder.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from keepstep.errors import StoreFailed
from keepstep.store.places import FILE_MODE, FOLDER_MODE, cannot_open

TRIES = 200
"""Somebody who looks holds a lock for microseconds; after this many milliseconds it is somebody else's."""

_PLAIN = re.compile(r"[0-9a-f]{1,64}")


class OwnerLocks:
    """The locks of the owners of one store, seen from this process."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._own: dict[str, int] = {}
        """Owner → the descriptor that holds its lock."""
        self._mutex = threading.Lock()

    def take(self, owner: str) -> None:
        """Hold this owner's lock until `drop`, or until the process ends. Again is fine."""
        with self._mutex:
            if owner in self._own:
                return
            try:
                self._own[owner] = self._take(owner)
            except OSError as error:
                raise cannot_open(self._path(owner), error) from error

    def held(self, owner: str) -> bool | None:
        """Whether somebody holds this owner's lock; None when it has no file, or one we may not look at."""
        if owner in self._own:
            return True
        try:
            descriptor = os.open(self._path(owner), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            return not _lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def drop(self, owner: str) -> None:
        """Give the lock back and take the file away. Twice is fine."""
        with self._mutex:
            descriptor = self._own.pop(owner, None)
            if descriptor is not None:
                with suppress(OSError):
                    self._path(owner).unlink()
                os.close(descriptor)
                self._tidy()

    def clear(self, keep: Collection[str]) -> None:
        """Take away the files of dead owners, except those of the owners named."""
        names = {_file_name(owner) for owner in keep}
        with suppress(OSError):
            for path in list(self.folder.iterdir()):
                if path.name not in names:
                    _clear(path)

    def forget(self) -> None:
        """In a forked child: let go of the parent's descriptors, whose locks stay with the parent."""
        own, self._own = self._own, {}
        self._mutex = threading.Lock()
        for descriptor in own.values():
            os.close(descriptor)

    def close(self) -> None:
        """Let go of every lock. The files of owners that were not dropped stay, and show that they are dead."""
        with self._mutex:
            own, self._own = self._own, {}
            for descriptor in own.values():
                os.close(descriptor)
            if own:
                self._tidy()

    def _take(self, owner: str) -> int:
        path = self._path(owner)
        for _ in range(TRIES):
            with suppress(FileExistsError):
                self.folder.mkdir(FOLDER_MODE)
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
            except FileNotFoundError:  # the folder was empty, and tidied away
                continue
            if _lock(descriptor, fcntl.LOCK_EX) and _is_at(descriptor, path):
                return descriptor
            os.close(descriptor)
            time.sleep(0.001)  # not the store's clock: a turned clock would not let the other go on
        raise StoreFailed(f"Owner {owner} is alive already: {path} is locked. Enlist under a new id.")

    def _tidy(self) -> None:
        with suppress(OSError):
            self.folder.rmdir()

    def _path(self, owner: str) -> Path:
        return self.folder / _file_name(owner)


def _file_name(owner: str) -> str:
    """A file name for an owner: its id as it is made, or the digest of any other text."""
    if _PLAIN.fullmatch(owner):
        return owner
    return "x" + blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _clear(path: Path) -> None:
    """Take away the file of a dead owner; nothing when its owner lives."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if _lock(descriptor, fcntl.LOCK_EX) and _is_at(descriptor, path):
            path.unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
