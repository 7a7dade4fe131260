"""One run's file: where its lines are, what they add up to, and what is wrong with it.

What was read is kept, and goes on from where it ended as long as the file does: lines are only ever added behind, and
whatever is changed otherwise is a new file under the old name.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from keepstep.errors import Damaged
from keepstep.log.chain import Stored
from keepstep.log.fold import Fold
from keepstep.log.ledger import LedgerEntry
from keepstep.store.directory.files import Files, asking
from keepstep.store.directory.lines import Outline, is_whole, outline, records_in
from keepstep.store.directory.names import file_name

PROOF_BYTES = 34
"""The end of the last line: a digest of it, so that a file that only looks the same is found out."""


class Span(NamedTuple):
    """Where a line is (without its line feed), and which records it has."""

    offset: int
    length: int
    number: int
    first: int
    last: int


class RunFile:
    """A run's file, as far as it was read. Used only while the store's lock is held."""

    def __init__(self, files: Files, path: Path) -> None:
        self.path = path
        self._files = files
        self._stamp: tuple[int, int, int] | None = None
        self._forget()

    def _forget(self) -> None:
        self._stamp = None
        self._proof = b""
        self.run_id: str | None = None
        self.size = 0
        self.end = 0
        """Where the last whole line ends; what is behind it was never committed."""
        self.lines = 0
        self.name_is_durable = False
        """Whoever wrote the file may have died before its name was safe: the first to add to it sees to that."""
        self.damage: str | None = None
        self._bury((0, 0))

    def _bury(self, buried: tuple[int, int]) -> None:
        self.buried = buried
        self.spans: list[Span] = []
        self.ledger: dict[bytes, LedgerEntry] = {}
        self._newest: Outline | None = None
        self._row: Fold | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a file of this name, be it empty."""
        return self._stamp is not None

    @property
    def seq(self) -> int:
        """Up to which record the run goes."""
        return self.spans[-1].last if self.spans else 0

    @property
    def row(self) -> Fold | None:
        """The row of the newest whole line; None when the run is not there, or deleted."""
        if self._row is None and self._newest is not None:
            try:
                self._row = self._newest.fold()
            except (msgspec.MsgspecError, ValueError) as error:
                raise self._damaged(self.lines, f"its row cannot be read ({error})") from error
            if self._row.seq != self.seq:
                raise self._damaged(self.lines, f"its row ends at record {self._row.seq}, not at {self.seq}")
        return self._row

    def refuse_damage(self) -> None:
        """Raise `Damaged` when something is wrong before the end."""
        if self.damage is not None:
            raise Damaged(self.damage)

    # --- reading -------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read what has come since the last time."""
        with asking(self.path, "read"):
            try:
                fd = self._files.open(self.path, os.O_RDONLY)
            except FileNotFoundError:
                self._forget()
                return
            try:
                self._read_on(fd)
            finally:
                self._files.close(fd)

    def _read_on(self, fd: int) -> None:
        status = self._files.status(fd)
        if _stamp(status) == self._stamp:
            return
        if self._stamp is None or not self._goes_on(fd, status):
            self._forget()
        self.take(self._files.read(fd, status.st_size - self.end, self.end))
        self.size = status.st_size
        self._stamp = _stamp(status)

    def _goes_on(self, fd: int, status: os.stat_result) -> bool:
        if self._stamp is None or self._stamp[0] != status.st_ino or status.st_size <= self.size:
            return False  # another file, or one that was changed in its place
        return self._files.read(fd, len(self._proof), self.end - len(self._proof)) == self._proof

    def wrote(self, line: bytes, status: os.stat_result) -> None:
        """Take in a line that was just written behind the last one."""
        self.take(line)
        self.size = status.st_size
        self.name_is_durable = True
        self._stamp = _stamp(status)

    def take(self, data: bytes) -> None:
        """Take in the bytes behind the last whole line."""
        base, number, start = self.end, self.lines, 0
        wrong: int | None = None
        while (stop := data.find(b"\n", start)) >= 0:
            number += 1
            line = data[start:stop]
            if not is_whole(line):
                wrong = wrong or number
            else:
                if wrong is not None:
                    self._remember_damage(wrong, "its check is not that of what it says, and whole lines follow")
                    wrong = None
                self._take_line(line, Span(base + start, stop - start, number, 0, 0))
            start = stop + 1

    def _take_line(self, line: bytes, span: Span) -> None:
        try:
            said = outline(line)
        except msgspec.MsgspecError as error:
            raise self._damaged(span.number, f"it is whole, but cannot be read ({error})") from error
        if self.run_id is None:
            self.run_id = said.run
        if said.run != self.run_id or file_name(said.run) != self.path.name:
            raise self._damaged(span.number, f"it belongs to run {said.run!r}, whose file has another name")
        if said.tombstone is not None:
            self._bury((said.tombstone.incarnation, said.tombstone.epoch))
        elif said.records:
            self._take_commit(said, span)
        self.lines = span.number
        self.end = span.offset + span.length + 1
        self._proof = (line + b"\n")[-PROOF_BYTES:]

    def _take_commit(self, said: Outline, span: Span) -> None:
        first, last = said.records[0].seq, said.records[-1].seq
        if first != self.seq + 1 or last != self.seq + len(said.records):
            self._remember_damage(span.number, f"it has records {first} to {last}, behind record {self.seq}")
        self.spans.append(span._replace(first=first, last=last))
        self.buried = (0, 0)
        entries = (one.entry() for one in said.ledger)
        self.ledger.update((one.key, one) for one in entries)
        said.row = said.row.copy()  # not a part of the line any more, which would stay in memory with it
        self._newest, self._row = said, None

    def records(self, after: int, until: int | None, *, newest_first: bool = False) -> Iterator[Stored]:
        """The records with after < seq <= until. Lines that are damaged have none; the chain will show it."""
        until = self.seq if until is None else until
        spans = [span for span in self.spans if span.last > after and span.first <= until]
        for _, line in self.read_lines(reversed(spans) if newest_first else spans):
            found = [one for one in records_in(line) if after < one.seq <= until]
            yield from reversed(found) if newest_first else found

    def records_at(self, seqs: Iterable[int]) -> list[Stored]:
        """The records of these numbers, in order."""
        wanted = sorted(set(seqs))
        near = (bisect_right(self.spans, seq, key=lambda span: span.first) - 1 for seq in wanted)
        spans = [self.spans[place] for place in sorted(set(near)) if place >= 0]
        found = {one.seq: one for _, line in self.read_lines(spans) for one in records_in(line)}
        return [found[seq] for seq in wanted if seq in found]

    def read_lines(self, spans: Iterable[Span]) -> Iterator[tuple[Span, bytes]]:
        """Read lines again, and check them again."""
        if not self.spans:
            return  # nor need there be a file
        with asking(self.path, "read"), self._files.opened(self.path, os.O_RDONLY) as fd:
            for span in spans:
                line = self._files.read(fd, span.length, span.offset)
                if not is_whole(line):
                    raise self._damaged(span.number, "its check is no longer that of what it says")
                yield span, line

    # --- what is wrong -------------------------------------------------------------------------------------------

    def _remember_damage(self, number: int, what: str) -> None:
        if self.damage is None:
            self.damage = str(self._damaged(number, what))

    def _damaged(self, number: int, what: str) -> Damaged:
        return Damaged(
            f"{self.path}, line {number}: {what}. Nothing is added to this run any more; its other lines can be "
            "read. Bring the file back from a backup, or delete the run."
        )


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns
