"""What the directory store asks of the operating system, in one place.

Tests put a file system under it that loses power. Every path that is opened stays inside the store's folder, is for
its user alone, and is not a symbolic link.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from keepstep.errors import CannotOpen, StoreError, StoreFailed, StoreFull
from keepstep.store.places import FILE_MODE, FOLDER_MODE, cannot_open

DRAFT = ".tmp"
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Files:
    """The file system."""

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)

    def close(self, fd: int) -> None:
        os.close(fd)

    def status(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def read(self, fd: int, count: int, offset: int) -> bytes:
        """Read so many bytes, or as many as there are."""
        parts: list[bytes] = []
        while count > 0 and (part := os.pread(fd, count, offset)):
            parts.append(part)
            count -= len(part)
            offset += len(part)
        return b"".join(parts)

    def write(self, fd: int, data: bytes, offset: int) -> None:
        """Write all of it, or raise."""
        rest = memoryview(data)
        while rest:
            count = os.pwrite(fd, rest, offset)
            rest = rest[count:]
            offset += count

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Return when the file's bytes survive a loss of power."""
        if sys.platform == "darwin":
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync alone leaves them in the drive's cache there
        else:
            os.fsync(fd)

    def sync_folder(self, path: Path) -> None:
        """Return when the names in a folder survive a loss of power."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def mkdir(self, path: Path) -> None:
        path.mkdir(FOLDER_MODE)

    def names(self, path: Path) -> list[str]:
        return [one.name for one in path.iterdir()]

    def lock(self, fd: int, *, shared: bool) -> None:
        fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)

    def unlock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)

    # --- made of the above ---------------------------------------------------------------------------------------

    @contextmanager
    def opened(self, path: Path, flags: int) -> Generator[int]:
        """An open file, closed at the end."""
        fd = self.open(path, flags)
        try:
            yield fd
        finally:
            self.close(fd)

    def load(self, path: Path) -> bytes | None:
        """All of a file; None when there is none."""
        try:
            fd = self.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return self.read(fd, self.status(fd).st_size, 0)
        finally:
            self.close(fd)

    def put(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        """Write a whole file under a name that shows it whole or not at all. The folder is left to sync."""
        draft = draft_of(path)
        with self.opened(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
            self.write(fd, data, 0)
            if durable:
                self.sync(fd)
        self.rename(draft, path)


@contextmanager
def asking(path: Path, what: str) -> Generator[None]:
    """Tell a refusal of the operating system in the words of a store."""
    try:
        yield
    except OSError as error:
        raise refusal(error, path, what) from error


@contextmanager
def opening(path: Path) -> Generator[None]:
    """The same, while a store is being opened."""
    try:
        yield
    except OSError as error:
        raise cannot_open(str(error.filename or path), error) from error
    except StoreFailed as error:
        raise CannotOpen(f"Cannot open {path}: {error}") from error.__cause__


def draft_of(path: Path) -> Path:
    """Under which name a file is written that is to replace another."""
    return path.with_name(path.name + DRAFT)


def refusal(error: OSError, path: Path, what: str) -> StoreError:
    """The store's word for a refusal of the operating system."""
    where = error.filename or path
    if error.errno in _FULL:
        return StoreFull(f"No space left to {what} {where}; nothing was written. Make room and try again.")
    return StoreFailed(f"Cannot {what} {where}: {error.strerror}. Check its rights and its disk.")
