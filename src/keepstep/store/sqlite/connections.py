"""All connections that a process has to one store: one writes, some read, one is for leases, and one watches."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

import apsw

from keepstep.errors import CannotOpen, StoreBusy, WrongUse
from keepstep.store.sqlite.connect import (
    CHECKPOINT_PAGES_CROWD,
    connect_read_only,
    connect_reader,
    connect_writer,
    fingerprint,
)  # fmt: skip
from keepstep.store.sqlite.driver import Connection, Cursor
from keepstep.store.sqlite.failures import translate, translate_opening
from keepstep.store.sqlite.line import Line
from keepstep.store.sqlite.turn import Turn

READERS_MAX = 8
"""More threads that read at once only take the interpreter lock from each other."""
FORK_SECONDS = 5.0
"""How long a fork waits for a call under way in another thread."""
READ_TRIES = 10
"""How often a reader that leaves no trace starts again because a writer came meanwhile."""

T = TypeVar("T")
Work = Callable[[Cursor], T]


class Connections:
    """Ways to read and to write, each for one transaction."""

    def __init__(self, path: str, vfs: str | None, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self.closed = False
        self.opened = False
        """Until then, what goes wrong is told as a failure to open."""
        self.turn = Turn(Path(f"{path}-lock"))
        read = connect_read_only if read_only else connect_reader
        self.writer = Line(partial(connect_writer, path, vfs))
        self.heart = Line(partial(connect_writer, path, vfs))
        self.watch = Line(partial(read, path, vfs))
        self._lines = [Line(partial(read, path, vfs)) for _ in range(READERS_MAX)]
        self._reset()

    def _reset(self) -> None:
        self._free = list(self._lines)
        """Used from its end, so that few connections serve unless many are needed at once."""
        self._turns = count()
        """Behind which one to wait when none is free."""
        self._resting: list[Callable[[], None]] = []

    @contextmanager
    def writing(self, line: Line | None = None, *, urgent: bool = True, crowd: bool = False) -> Generator[Cursor]:
        """One transaction that writes; it is undone when the block raises. If it is not urgent, no disk is waited for.

        What is not urgent becomes durable with the next transaction that is: both are in one log. That log may become
        larger once a crowd of runs is written at once.
        """
        line = line or self.writer
        with line.mutex:
            self._check_open()
            with self.turn:
                try:
                    cursor = line.cursor()
                    line.set("synchronous", "FULL" if urgent else "NORMAL")
                    if crowd:
                        line.set("wal_autocheckpoint", CHECKPOINT_PAGES_CROWD)
                    cursor.execute("BEGIN IMMEDIATE")
                    yield cursor
                    cursor.execute("COMMIT")
                except (apsw.Error, UnicodeEncodeError) as error:
                    raise self._undo(line, error) from error
                except BaseException:
                    line.give_up()
                    raise

    def reading(self, work: Work[T], *, is_one_statement: bool = False) -> T:
        """What `work` finds, in one transaction that sees one state of the store. It never waits for a write."""
        try:
            line, is_free = self._free.pop(), True
        except IndexError:
            line, is_free = self._lines[next(self._turns) % READERS_MAX], False
        try:
            with line.mutex:
                return self.reading_by(line, work, is_one_statement=is_one_statement)
        finally:
            if is_free:
                self._free.append(line)

    def reading_by(self, line: Line, work: Work[T], *, is_one_statement: bool = False) -> T:
        """The same, by a line whose mutex is held."""
        self._check_open()
        try:
            if self.read_only:
                return self._read_traceless(line, work)
            return work(line.cursor()) if is_one_statement else _read(line.cursor(), work)
        except (apsw.Error, UnicodeEncodeError) as error:
            raise self._undo(line, error) from error
        except BaseException:
            line.give_up()
            raise

    def _read_traceless(self, line: Line, work: Work[T]) -> T:
        """Read what no connection guards, unless there is a log: see `connect`."""
        for _ in range(READ_TRIES):
            before = fingerprint(self.path)
            if before is None:
                return _read(line.cursor(), work)
            try:
                line.drop()
                found = _read(line.cursor(), work)
            except apsw.Error:
                if fingerprint(self.path) == before:
                    raise
                continue
            finally:
                line.drop()
            if fingerprint(self.path) == before:
                return found
        raise StoreBusy(f"{self.path} changed each time it was read; try again.")

    def _undo(self, line: Line, error: Exception) -> Exception:
        told = translate if self.opened else translate_opening
        failure = told(error, self.path, line.system_errno())
        line.give_up()
        return failure

    def _check_open(self) -> None:
        if self.closed:
            raise WrongUse("This store is closed. Open another one.")

    def prepare(self, prepare: Callable[[Connection], None], check: Callable[[Connection], object]) -> None:
        """Make the file ready to be written to, in our turn, unless `check` refuses it before."""
        with self.writer.mutex:
            self._check_open()
            try:
                connection = self.writer.cursor().connection
                check(connection)
                with self.turn:
                    prepare(connection)
            except apsw.Error as error:
                raise self._undo(self.writer, error) from error
            except BaseException:
                self.writer.drop()
                raise

    def watched(self) -> tuple[int, int]:
        """How often the watching connection was made, and a number that changes when anybody commits."""
        with self.watch.mutex:
            self._check_open()
            try:
                version: int = self.watch.cursor().execute("PRAGMA data_version").get
            except apsw.Error as error:
                raise self._undo(self.watch, error) from error
            return self.watch.made, version

    def _empty_log(self) -> None:
        """Take everything over into the file itself, if that can be done now; in the log it is as safe."""
        with suppress(apsw.Error, CannotOpen), self.writer.mutex, self.turn:
            cursor = self.writer.cursor()
            cursor.connection.set_busy_timeout(0)
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close every connection, once the calls under way have ended. Twice is fine."""
        if self.closed:
            return
        self.closed = True
        try:
            if self.opened and not self.read_only:
                self._empty_log()
        finally:
            for line in (self.heart, self.watch, *self._lines, self.writer):
                with line.mutex:
                    line.drop()
            self.turn.close()

    def rest(self) -> None:
        """Before a fork: wait for the calls under way, close, and let nobody in until `wake`."""
        for line in (self.writer, self.heart, self.watch, *self._lines):
            if line.mutex.acquire(timeout=FORK_SECONDS):
                line.drop()
                self._resting.append(line.mutex.release)
        if self.turn.mutex.acquire(timeout=FORK_SECONDS):
            self._resting.append(self.turn.mutex.release)

    def wake(self) -> None:
        """After a fork, in the parent: go on."""
        resting, self._resting = self._resting, []
        for release in resting:
            release()

    def forget(self) -> None:
        """After a fork, in the child: nothing of the parent's is used, nor closed. Twice is fine."""
        for line in (self.writer, self.heart, self.watch, *self._lines):
            line.forget()
        self.turn.forget()
        self._reset()


def _read(cursor: Cursor, work: Work[T]) -> T:
    cursor.execute("BEGIN")
    found = work(cursor)
    cursor.execute("COMMIT")
    return found
