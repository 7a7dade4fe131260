"""All connections that a process has to one store, and what happens when one is lost.

A connection is made when it is first needed, and thrown away when anything went wrong on it; the next use makes
another. What may be sent twice is sent again on a fresh one; what may not ends in `StoreFailed`, and the writer finds
out by its batch ids.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import psycopg

from keepstep.errors import CannotOpen, KeepstepError, WrongUse
from keepstep.store.postgres.failures import (
    is_lost,
    is_refused,
    is_starting,
    translate,
    translate_lost,
    translate_opening,
    translate_unreachable,
)  # fmt: skip
from keepstep.store.postgres.place import IDLE_MS, Place
from keepstep.store.postgres.port import Port, Step, Values, Wire
from keepstep.store.postgres.statements import Statements

SERVER_VERSION = 140_000
"""The oldest that its makers still mend."""
READERS_MAX = 8
"""Connections for reading and claiming; more threads that do it at once only take the interpreter from each other."""
RECONNECT_SECONDS = 15.0
"""So long a server may take to come back before a call gives up."""
PAUSE_SECONDS_FIRST = 0.02
PAUSE_SECONDS_MOST = 0.5
TRIES = 5
"""So often a call is sent again because its connection was lost."""


class Lost(Exception):
    """The connection is gone; whether what was sent last was done is not known."""


class Line:
    """A connection, used by one at a time."""

    def __init__(self, lines: Lines, port: Port, *, plans_once: bool = False) -> None:
        self._lines = lines
        self._plans_once = plans_once
        self._port = port
        self.mutex = port.mutex()
        self.made = 0
        """How often it has connected."""
        self._wire: Wire | None = None

    async def wire(self) -> Wire:
        """The connection; it is made when there is none, or none that works."""
        if self._wire is not None and (self._wire.broken or not self._wire.idle):
            await self.drop()
        if self._wire is None:
            self._wire = await self._lines.connected(plans_once=self._plans_once)
            self.made += 1
        return self._wire

    async def send(self, steps: Sequence[Step], *, within: bool = False) -> list[list[Values]]:
        """Carry out statements in one round trip; raises `Lost`, or what the server says.

        What belongs `within` a transaction that has begun is never sent on another connection.
        """
        wire = self._wire if within else await self.wire()
        assert wire is not None, "a line that was lost ends its transaction"
        try:
            return await wire.send(steps)
        except psycopg.Error as error:
            if wire.broken or is_lost(error):
                await self.drop()
                raise Lost from error
            await self._undo(wire)
            raise translate(error, self._lines.place.url) from error
        except UnicodeEncodeError as error:
            await self.drop()
            raise translate(error, self._lines.place.url) from error
        except BaseException:
            await self.drop()
            raise

    async def heed(self, seconds: float) -> None:
        """Wait for a notification, at most so long. A connection that is lost meanwhile is made anew when next used."""
        wire = await self.wire()
        try:
            await wire.heed(seconds)
        except psycopg.Error:
            await self.drop()

    async def undo(self) -> None:
        """End the transaction that is open, if one is. Nothing is written: what writes comes together with its end."""
        if self._wire is not None:
            await self._undo(self._wire)

    async def _undo(self, wire: Wire) -> None:
        if wire.idle:
            return
        if not wire.is_open:
            await self.drop()
            return
        try:
            await wire.send([Step("COMMIT")])  # at a ROLLBACK psycopg forgets what it has prepared
        except psycopg.Error:
            await self.drop()

    async def drop(self) -> None:
        """End the connection; the next use makes another."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.cut()

    def forget(self) -> None:
        """In a forked child: the parent's connection stays the parent's."""
        self.mutex = self._port.mutex()
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.forget()


class Lines:
    """The connections of one store: one writes, one is for leases, one watches, and the others read and claim."""

    def __init__(self, place: Place, port: Port, statements: Statements) -> None:
        self.place = place
        self.sql = statements
        self.opened = False
        """Until then, what goes wrong is told as a failure to open."""
        self.closed = False
        self._port = port
        self.writer = Line(self, port, plans_once=True)
        self.heart = Line(self, port)
        self.watch = Line(self, port)
        self._readers = [Line(self, port) for _ in range(READERS_MAX)]
        self._reset()

    def _reset(self) -> None:
        self._free = list(self._readers)
        """Used from its end, so that few connections serve unless many are needed at once."""
        self._places = self._port.places(READERS_MAX)

    # --- connecting ----------------------------------------------------------------------------------------------

    async def connected(self, *, plans_once: bool = False) -> Wire:
        """A new connection. A server that is starting, or is away, is waited for a while."""
        self._check_open()
        waited, pause = 0.0, PAUSE_SECONDS_FIRST
        while True:
            try:
                return await self._greeted(await self._connect(), plans_once=plans_once)
            except psycopg.Error as error:
                if not self.opened and not is_starting(error):
                    raise translate_opening(error, self.place.url) from error
                if is_refused(error) or waited >= RECONNECT_SECONDS or self.closed:
                    raise translate_unreachable(error, self.place.url, waited) from error
            await self._port.pause(pause)
            waited, pause = waited + pause, min(pause * 2, PAUSE_SECONDS_MOST)

    async def _greeted(self, wire: Wire, *, plans_once: bool) -> Wire:
        """The connection, to a server that is not too old."""
        by_pooler = self.place.by_pooler
        steps = [Step(self.sql("meet" if by_pooler else "greet"))]
        if plans_once and not by_pooler:
            steps.append(Step(self.sql("plan_once")))
        [[(version, *_)], *_] = await wire.send(steps)
        if version < SERVER_VERSION:
            await wire.cut()
            raise CannotOpen(
                f"Cannot open {self.place.url}: it is PostgreSQL {version // 10000}, and keepstep needs "
                f"{SERVER_VERSION // 10000} or later."
            )
        return wire

    async def _connect(self) -> Wire:
        place = self.place
        return await self._port.connect(place.conninfo, place.answer_seconds, prepares=not place.by_pooler)

    def _check_open(self) -> None:
        if self.closed:
            raise WrongUse("This store is closed. Open another one.")

    # --- using them ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def reader(self) -> AsyncGenerator[Line]:
        """Any line for reading and claiming."""
        async with self._places:
            line = self._free.pop()
            try:
                async with self.using(line):
                    yield line
            finally:
                self._free.append(line)

    @asynccontextmanager
    async def using(self, line: Line) -> AsyncGenerator[Line]:
        """This line, to oneself; whatever a block leaves open is undone."""
        async with line.mutex:
            self._check_open()
            try:
                yield line
            except KeepstepError:
                await line.undo()
                raise
            except BaseException:
                await line.drop()
                raise

    async def read(self, *steps: Step) -> list[list[Values]]:
        """What the statements find, in one round trip; they are sent again when the connection is lost."""
        async with self.reader() as line:
            return await self.again(line, steps)

    async def again(self, line: Line, steps: Sequence[Step]) -> list[list[Values]]:
        """Send what may be sent twice."""
        for tried in range(TRIES):
            try:
                return await line.send(steps)
            except Lost as lost:
                if tried == TRIES - 1 or was_too_slow(lost):
                    raise self.unknown(lost) from lost.__cause__
        raise AssertionError("unreachable")

    def begin(self, *, urgent: bool = True) -> list[Step]:
        """How a transaction begins."""
        steps = [Step("BEGIN")]
        if self.place.by_pooler or not urgent:
            waits = round(self.place.answer_seconds * 1000)
            steps.append(Step(self.sql("tune"), {"idle_ms": str(IDLE_MS), "lock_ms": str(waits), "urgent": urgent}))
        return steps

    def unknown(self, lost: Lost) -> KeepstepError:
        """What to raise when something was sent that may have been done."""
        return translate_lost(_cause(lost), self.place.url)

    # --- the end, and forks --------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close every connection, once the calls under way have ended. Twice is fine."""
        self.closed = True
        await self.drop()

    async def drop(self) -> None:
        """End every connection; the next use makes another."""
        for line in (self.heart, self.watch, *self._readers, self.writer):
            async with line.mutex:
                await line.drop()

    def forget(self) -> None:
        """After a fork, in the child: nothing of the parent's is used, nor closed. Twice is fine."""
        for line in (self.writer, self.heart, self.watch, *self._readers):
            line.forget()
        self._reset()


def _cause(lost: Lost) -> Exception:
    assert isinstance(lost.__cause__, Exception), "it is raised from what the driver said"
    return lost.__cause__


def was_too_slow(lost: Lost) -> bool:
    """Whether an answer was waited for in vain: waiting again would take as long."""
    return "no answer came" in str(_cause(lost))
