"""A loss of power under SQLite: whatever goes through this VFS is written down, and what was not synced can be lost.

Nothing fails while a story is told: every write, truncation, sync, creation and deletion goes to the real files, and
into a `Recording`. Afterwards a `Disk` takes in as much of it as had happened when the power went, and chance says
what is there in the morning:

- what was written to a file before it was synced is there;
- whatever was written later is kept, lost or torn, each write for itself, so in any order; where a file grew without
  being written, anything may stand;
- a name that came or went after the last sync of its folder is there or not;
- the shared memory (`-shm`) is gone. It does not come by here, as SQLite's own VFS takes care of it.

SQLite writes no wider than it is asked to here (its `POWERSAFE_OVERWRITE`), so bytes beside a torn write are safe.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import apsw

SECTOR_BYTES = 512
"""What even an old disk writes at once."""
KEPT = (0.0, 0.5, 0.9, 1.0)
"""How much of what was not synced survives: nothing, everything, or some."""

_SYNCS_ITS_NAME = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
_names = count()


class Created(NamedTuple):
    """A file is there, empty."""

    name: str
    number: int


class Deleted(NamedTuple):
    """A name is gone."""

    name: str


class Wrote(NamedTuple):
    """Bytes were written to a file."""

    number: int
    offset: int
    data: bytes


class Cut(NamedTuple):
    """A file was truncated."""

    number: int
    size: int


class Synced(NamedTuple):
    """Everything written to a file is safe."""

    number: int


class FolderSynced(NamedTuple):
    """Every name is safe."""


class Noted(NamedTuple):
    """Something that the test itself wrote down between the others."""

    what: Any


Event = Created | Deleted | Wrote | Cut | Synced | FolderSynced | Noted


# --- the disk --------------------------------------------------------------------------------------------------------


@dataclass
class _File:
    synced: bytes = b""
    later: list[Wrote | Cut] = field(default_factory=list[Wrote | Cut])

    def now(self) -> bytes:
        data = bytearray(self.synced)
        for one in self.later:
            _carry_out(data, one)
        return bytes(data)


class Disk:
    """The files of one folder: what a process sees, and what a loss of power leaves of it."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        files = files or {}
        self._files = {number: _File(data) for number, data in enumerate(files.values())}
        self._names_synced = {name: number for number, name in enumerate(files)}
        self._names_later: list[Created | Deleted] = []

    @property
    def names(self) -> dict[str, int]:
        """Name → number of the file, as a process sees it."""
        return _named(self._names_synced, self._names_later)

    def copy(self) -> Disk:
        """Another one, that goes on by itself."""
        return deepcopy(self)

    def take(self, event: Event) -> None:
        """Let something happen."""
        match event:
            case Created():
                self._files[event.number] = _File()
                self._names_later.append(event)
            case Deleted():
                self._names_later.append(event)
            case Wrote() | Cut():
                self._files[event.number].later.append(event)
            case Synced():
                self._files[event.number] = _File(self._files[event.number].now())
            case FolderSynced():
                self._names_synced, self._names_later = self.names, []
            case Noted():
                pass

    def now(self) -> dict[str, bytes]:
        """What a process reads: everything that was written."""
        return {name: self._files[number].now() for name, number in self.names.items()}

    def after_loss(self, chance: Random) -> dict[str, bytes]:
        """What is there after a loss of power."""
        kept = chance.choice(KEPT)
        names = _named(self._names_synced, [one for one in self._names_later if chance.random() < kept])
        return {name: _left(self._files[number], kept, chance) for name, number in names.items()}


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Put files into a folder."""
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def _named(names: Mapping[str, int], later: list[Created | Deleted]) -> dict[str, int]:
    found = dict(names)
    for one in later:
        if isinstance(one, Created):
            found[one.name] = one.number
        else:
            found.pop(one.name, None)
    return found


def _left(file: _File, kept: float, chance: Random) -> bytes:
    data = bytearray(file.synced)
    for one in file.later:
        if chance.random() < kept:
            _carry_out(data, one)
        elif isinstance(one, Wrote):
            for piece in _torn(one, chance):
                _grow(data, piece.offset, chance)
                _carry_out(data, piece)
    return bytes(data)


def _torn(write: Wrote, chance: Random) -> list[Wrote]:
    """What is left of a write that did not come to its end: nothing, a part, some sectors, or only its place."""
    size = len(write.data)
    fate = chance.randrange(4)
    if fate == 0:
        return []
    if fate == 1:
        return [Wrote(write.number, write.offset + size, b"")]
    if fate == 2:
        edges = [0, chance.randrange(size + 1), size]
    else:
        edges = [0, *range(SECTOR_BYTES - write.offset % SECTOR_BYTES, size, SECTOR_BYTES), size]
    return [
        Wrote(write.number, write.offset + start, write.data[start:end])
        for start, end in pairwise(edges)
        if chance.random() < 0.5
    ]


def _grow(data: bytearray, size: int, chance: Random) -> None:
    """The file has become longer, and nobody knows what stands there."""
    more = max(0, size - len(data))
    data += chance.randbytes(more) if chance.random() < 0.5 else bytes(more)


def _carry_out(data: bytearray, one: Wrote | Cut) -> None:
    end = one.size if isinstance(one, Cut) else one.offset
    data += bytes(max(0, end - len(data)))
    if isinstance(one, Cut):
        del data[one.size :]
    else:
        data[one.offset : one.offset + len(one.data)] = one.data


# --- the recording ---------------------------------------------------------------------------------------------------


class Recording:
    """What happens on a disk, in order."""

    def __init__(self, disk: Disk | None = None) -> None:
        self.start = disk.copy() if disk is not None else Disk()
        self.events: list[Event] = []
        self.mutex = threading.RLock()
        """Held while something is done and written down, so that both have one order."""
        self.is_over = False
        """Nothing is written down any more."""
        self._numbers = self.start.names
        self._next = max(self._numbers.values(), default=-1) + 1

    def add(self, event: Event) -> None:
        """Write down what was done."""
        if not self.is_over:
            self.events.append(event)

    def note(self, what: Any) -> None:
        """Write down something of the test's own."""
        with self.mutex:
            self.add(Noted(what))

    def number(self, name: str) -> int:
        """The number of a file that is open; it is new when its name is not known."""
        if name not in self._numbers:
            self._numbers[name] = self._next
            self._next += 1
            self.add(Created(name, self._numbers[name]))
        return self._numbers[name]

    def deleted(self, name: str) -> None:
        """A name is gone; the next file of that name is another one."""
        if self._numbers.pop(name, None) is not None:
            self.add(Deleted(name))

    def moments(self) -> Iterator[tuple[int, Disk, list[Any]]]:
        """After each event: how many there were, the disk (the same one each time), what was noted until then."""
        disk, notes = self.start.copy(), list[Any]()
        yield 0, disk, notes
        for at, event in enumerate(self.events, 1):
            if isinstance(event, Noted):
                notes.append(event.what)
            disk.take(event)
            yield at, disk, notes


class _RecordedFile(apsw.VFSFile):
    def __init__(self, recording: Recording, number: int, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._recording = recording
        self._number = number
        opened = flags[0]
        self._syncs_its_name = bool(opened & _SYNCS_ITS_NAME and opened & apsw.SQLITE_OPEN_CREATE)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - as apsw has it
        with self._recording.mutex:
            super().xWrite(data, offset)
            self._recording.add(Wrote(self._number, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - as apsw has it
        with self._recording.mutex:
            super().xTruncate(newsize)
            self._recording.add(Cut(self._number, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802 - as apsw has it
        with self._recording.mutex:
            super().xSync(flags)
            self._recording.add(Synced(self._number))
            if self._syncs_its_name:  # as os_unix.c does at the first sync of a journal or log
                self._syncs_its_name = False
                self._recording.add(FolderSynced())


class PowerVfs(apsw.VFS):
    """SQLite's own VFS, with a recording. It must outlive every connection made through it."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.name = f"keepstep power {next(_names)}"
        super().__init__(self.name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - as apsw has it
        if name is None:  # a passing file of SQLite's own
            return apsw.VFSFile("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        with self.recording.mutex:
            return _RecordedFile(self.recording, self.recording.number(Path(path).name), name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - as apsw has it
        with self.recording.mutex:
            super().xDelete(filename, syncdir)
            self.recording.deleted(Path(filename).name)
            if syncdir:
                self.recording.add(FolderSynced())
