"""A file system that loses power: what was not synced is kept, lost or torn, as chance will have it."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from keepstep.store.directory.files import Files


class PowerLoss(BaseException):
    """Nothing works any more."""


class PowerFiles(Files):
    """Remembers what was synced. After `fuse` operations that change something, everything fails."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.fuse: int | None = None
        self.operations = 0
        self.synced: dict[int, bytes] = {}
        """Inode → what would be there after a loss of power."""
        self.names_synced: dict[Path, dict[str, int]] = {}
        self.handles: dict[int, int] = {}
        """Inode → a descriptor that keeps it from being used again."""

    def _step(self) -> bool:
        """Count an operation; True when the power goes in the middle of it."""
        if self.fuse is None:
            return False
        if self.fuse < 0:
            raise PowerLoss
        self.operations += 1
        self.fuse -= 1
        return self.fuse < 0

    def open(self, path: Path, flags: int) -> int:
        if flags & os.O_CREAT and self._step():
            raise PowerLoss
        fd = super().open(path, flags)
        inode = os.fstat(fd).st_ino
        if inode not in self.handles:
            self.handles[inode] = os.open(path, os.O_RDONLY)
            self.synced[inode] = b""
        return fd

    def write(self, fd: int, data: bytes, offset: int) -> None:
        if self._step():
            super().write(fd, data[: self.chance.randrange(len(data) + 1)], offset)
            raise PowerLoss
        super().write(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        self._change()
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._change()
        super().sync(fd)
        status = os.fstat(fd)
        self.synced[status.st_ino] = os.pread(self.handles[status.st_ino], status.st_size, 0)

    def sync_folder(self, path: Path) -> None:
        self._change()
        self.names_synced[path] = self._names_now(path)

    def rename(self, source: Path, target: Path) -> None:
        self._change()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self._change()
        super().unlink(path)

    def mkdir(self, path: Path) -> None:
        self._change()
        super().mkdir(path)

    def _change(self) -> None:
        if self._step():
            raise PowerLoss

    def _names_now(self, path: Path) -> dict[str, int]:
        return {one.name: one.stat().st_ino for one in path.iterdir() if one.is_file()}

    def close_all(self) -> None:
        for fd in self.handles.values():
            os.close(fd)

    # --- the morning after ---------------------------------------------------------------------------------------

    def image(self, source: Path, target: Path) -> None:
        """Write what is on the disk after the loss of power."""
        target.mkdir()
        for folder in (one for one in (source, source / "runs", source / "leases") if one.exists()):
            copy = target / folder.relative_to(source)
            copy.mkdir(exist_ok=True)
            synced, now = self.names_synced.get(folder, {}), self._names_now(folder)
            for name in sorted(synced.keys() | now.keys()):
                inode = self.chance.choice((synced.get(name), now.get(name)))
                if inode is not None:
                    (copy / name).write_bytes(self._content(inode))

    def _content(self, inode: int) -> bytes:
        handle = self.handles.get(inode)
        if handle is None:
            return b""
        synced, now = self.synced[inode], os.pread(handle, os.fstat(handle).st_size, 0)
        kind = self.chance.randrange(3)
        if kind < 2 or synced == now:
            return (synced, now)[kind % 2]
        return self._torn(synced, now)

    def _torn(self, synced: bytes, now: bytes) -> bytes:
        """Some of what was not synced: up to some length, and with a hole."""
        least = min(len(synced), len(now))
        same = next((at for at, pair in enumerate(zip(synced, now, strict=False)) if pair[0] != pair[1]), least)
        torn = bytearray(now[: self.chance.randint(same, len(now))])
        hole = sorted(self.chance.randint(same, max(same, len(torn))) for _ in range(2))
        torn[hole[0] : hole[1]] = bytes(hole[1] - hole[0])
        return bytes(torn)
