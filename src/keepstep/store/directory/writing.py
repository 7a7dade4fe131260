"""What one transaction does to files, so that it can be undone until it is through."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from keepstep.errors import StoreFailed
from keepstep.store.directory.files import Files, draft_of
from keepstep.store.directory.run_file import RunFile


class _Touched(NamedTuple):
    path: Path
    end: int
    is_new: bool


class Writing:
    """Appends are cut off again, and drafts thrown away, when the block is left by an exception."""

    def __init__(self, files: Files, folder: Path) -> None:
        self._files = files
        self._folder = folder
        self._touched: list[_Touched] = []
        self._drafts: list[tuple[Path, Path]] = []
        self._names_change = False
        self._renamed = False
        self._written: list[tuple[RunFile, bytes, os.stat_result]] = []

    def __enter__(self) -> Self:
        return self

    def append(self, file: RunFile, line: bytes) -> None:
        """Add a durable line behind the last whole one; what a dead writer left there goes."""
        flags = os.O_WRONLY | (0 if file.exists else os.O_CREAT | os.O_EXCL)
        self._touched.append(_Touched(file.path, file.end, not file.exists))
        self._names_change |= not file.name_is_durable
        with self._files.opened(file.path, flags) as fd:
            if file.size > file.end:
                self._files.truncate(fd, file.end)
            self._files.write(fd, line, file.end)
            self._files.sync(fd)
            self._written.append((file, line, self._files.status(fd)))

    def replace(self, file: RunFile, content: bytes) -> None:
        """Put a durable file in the place of another, at the end of the block."""
        draft = draft_of(file.path)
        self._drafts.append((draft, file.path))
        with self._files.opened(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
            self._files.write(fd, content, 0)
            self._files.sync(fd)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self._finish()
            except BaseException as late:
                self._undo(late)
                if self._renamed:
                    raise StoreFailed(f"Writing failed late ({late}); {_LOOK}") from late
                raise
        else:
            self._undo(error)

    def _finish(self) -> None:
        for draft, path in self._drafts:
            self._files.rename(draft, path)
            self._renamed = True
        if self._names_change or self._drafts:
            self._files.sync_folder(self._folder)
        for file, line, status in self._written:
            file.wrote(line, status)

    def _undo(self, error: BaseException) -> None:
        try:
            for one in self._touched:
                self._cut(one)
            for draft, _ in self._drafts:
                with suppress(FileNotFoundError):
                    self._files.unlink(draft)
        except OSError as second:
            raise StoreFailed(f"Writing failed ({error}), and could not be taken back ({second}); {_LOOK}") from error

    def _cut(self, one: _Touched) -> None:
        with suppress(FileNotFoundError), self._files.opened(one.path, os.O_WRONLY) as fd:
            self._files.truncate(fd, one.end)
            self._files.sync(fd)  # or the refused commit could come back after a loss of power
            if one.is_new:
                self._files.unlink(one.path)


_LOOK = "some of the runs may have what was written. Look at them."
