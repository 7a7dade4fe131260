"""The folder of a store: its lock, its marker, its count of changes, and how it comes into being."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from keepstep.errors import BadInput, NewerFormat, NotAStore
from keepstep.store.directory.files import DRAFT, Files, asking, opening
from keepstep.store.directory.names import SUFFIX
from keepstep.store.places import check_place

FORMAT = 1
MARKER = "keepstep.json"
_FOLDERS = ("runs", "leases")
_UNFINISHED = {"lock", MARKER + DRAFT, *_FOLDERS}
"""What may stand in a folder whose store is being created, by us or beside us."""


class _Marker(msgspec.Struct):
    keepstep: str
    format: int


class Folder:
    """Where the files of a store are."""

    def __init__(self, files: Files, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.runs, self.leases = (path / name for name in _FOLDERS)
        self.owners = path / "owners"
        self._lock = path / "lock"
        self._marker = path / MARKER
        self._changes = path / "changes"
        self._files = files
        self._read_only = read_only
        self._held: set[int] = set()

    @contextmanager
    def locked(self, *, shared: bool) -> Generator[None]:
        """Keep writers (and, unless shared, readers) of all processes and threads out."""
        # A lock belongs to an open file: each hold opens its own, so that threads exclude each other as well.
        fd = self._open_lock()
        if fd is None:
            yield
            return
        self._held.add(fd)
        try:
            with asking(self._lock, "lock"):
                self._files.lock(fd, shared=shared)
            yield
        finally:
            self._held.discard(fd)
            self._files.unlock(fd)  # a child forked meanwhile has the file open, too
            self._files.close(fd)

    def after_fork(self) -> None:
        """Close what the parent's threads held, lest it stays locked when the parent is killed."""
        while self._held:
            self._files.close(self._held.pop())

    def _open_lock(self) -> int | None:
        with asking(self._lock, "open"):
            try:
                # A writer asks for the right to write here, so that a store it cannot write is not opened at all.
                return self._files.open(self._lock, os.O_RDONLY if self._read_only else os.O_RDWR | os.O_CREAT)
            except FileNotFoundError:
                if not self._read_only:
                    raise
                return None  # a copy on a read-only disk, where nobody writes

    # --- changes -------------------------------------------------------------------------------------------------

    def changes(self) -> int:
        """How many commits there were. May go back after a loss of power: it is never synced."""
        with asking(self._changes, "read"):
            text = self._files.load(self._changes)
        return int(text) if text and text.strip().isdigit() else 0

    def count_up(self) -> int:
        """Count a commit."""
        number = self.changes() + 1
        with asking(self._changes, "write"), self._files.opened(self._changes, os.O_WRONLY | os.O_CREAT) as fd:
            self._files.write(fd, f"{number:020d}\n".encode(), 0)
        return number

    # --- opening -------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """See that this is a store that can be used; create it if it may be."""
        check_place(str(self.path), is_file=False, must_exist=self._read_only)
        with opening(self.path):
            if self._read_only:
                self._check_marker()
            else:
                self._create()

    def _create(self) -> None:
        self._make()
        names = set(self._files.names(self.path))
        if MARKER not in names and not names <= _UNFINISHED:
            other = min(names - _UNFINISHED)
            raise NotAStore(f"{self.path} holds {other!r}, and no {MARKER}. {_ADVICE}")
        with self.locked(shared=False):
            names = set(self._files.names(self.path))
            if MARKER not in names:
                self._fill(names)
            # Whoever created it may have died before its names were safe, so that is never taken for granted.
            self._files.sync_folder(self.path)
            with suppress(PermissionError):  # a parent that we may not look into is somebody else's to look after
                self._files.sync_folder(self.path.parent)
            self._check_marker()
            self._sweep()

    def _make(self) -> None:
        with suppress(FileExistsError):
            self._files.mkdir(self.path)

    def _fill(self, names: set[str]) -> None:
        for name in _FOLDERS:
            if name not in names:
                self._files.mkdir(self.path / name)
        if self._files.names(self.runs):
            raise NotAStore(f"{self.path} holds a folder 'runs' with files, and no keepstep.json. {_ADVICE}")
        self._files.sync_folder(self.path)
        self._files.put(self._marker, msgspec.json.encode(_Marker("directory", FORMAT)) + b"\n")

    def _check_marker(self) -> None:
        text = self._files.load(self._marker)
        if text is None:
            raise NotAStore(f"{self.path} has no {MARKER}. {_ADVICE}")
        try:
            marker = msgspec.json.decode(text, type=_Marker)
        except msgspec.MsgspecError:
            marker = None
        if marker is None or marker.keepstep != "directory":
            raise NotAStore(f"{self._marker} is not that of a store in a directory. {_ADVICE}")
        if marker.format > FORMAT and not self._read_only:
            raise NewerFormat(
                f"{self.path} has format {marker.format}; this keepstep writes format {FORMAT}. "
                "Upgrade it, or open the store read-only."
            )

    def _sweep(self) -> None:
        """Throw away the drafts of writers that died."""
        for name in self._files.names(self.runs):
            if name.endswith(DRAFT):
                self._files.unlink(self.runs / name)

    # --- copying -------------------------------------------------------------------------------------------------

    def copy_to(self, target: Folder) -> None:
        """Copy all runs into a new folder, which is a store once everything is there."""
        target._make()
        if self._files.names(target.path):
            raise BadInput(f"{target.path} is not empty. Name a new folder for the backup.")
        for name in _FOLDERS:
            self._files.mkdir(target.path / name)
        for name in self._files.names(self.runs):
            if name.endswith(SUFFIX):
                self._copy(self.runs / name, target.runs / name)
        self._files.sync_folder(target.runs)
        self._copy(self._changes, target._changes)
        self._files.sync_folder(target.path)
        self._copy(self._marker, target._marker)
        self._files.sync_folder(target.path)
        self._files.sync_folder(target.path.parent)

    def _copy(self, source: Path, target: Path) -> None:
        self._files.put(target, self._files.load(source) or b"")


_ADVICE = "Name an empty folder, a new one, or a store."
