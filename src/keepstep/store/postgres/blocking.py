"""Connections that block the calling thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, LiteralString, cast

import psycopg
from psycopg.errors import _WaitTimeout  # pyright: ignore[reportPrivateUsage]  # raised by the public `wait`
from psycopg.pq import ConnStatus, TransactionStatus

from keepstep.store.postgres.port import Step, Values

_forgotten: list[Any] = []
"""Connections of a parent process: kept from ever being closed here, which would end them there."""


class _Bounded(psycopg.Connection[Values]):
    """A connection that gives up on an answer which does not come."""

    answer_seconds: float = 60.0

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for an answer; without it in time, the connection is of no use any more."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.answer_seconds)
        except _WaitTimeout:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"no answer came within {self.answer_seconds:g} s") from None


class BlockingWire:
    """See `Wire`."""

    def __init__(self, connection: _Bounded, block: Any, pipeline: psycopg.Pipeline, *, prepares: bool) -> None:
        self._connection = connection
        self._block = block
        self._pipeline = pipeline
        """Never left: leaving it would cost a round trip more, and the server would take us for somebody who works on,
        however long we are silent inside a transaction."""
        self._usual_seconds = connection.answer_seconds
        self._prepares = prepares

    @property
    def broken(self) -> bool:
        return self._connection.closed or self._connection.pgconn.status == ConnStatus.BAD

    @property
    def idle(self) -> bool:
        return not self.broken and self._connection.pgconn.transaction_status == TransactionStatus.IDLE

    @property
    def is_open(self) -> bool:
        return not self.broken and self._connection.pgconn.transaction_status == TransactionStatus.INTRANS

    async def send(self, steps: Sequence[Step]) -> list[list[Values]]:
        self._connection.answer_seconds = max(one.seconds or self._usual_seconds for one in steps)
        try:
            cursors = [self._execute(one) for one in steps]
        except psycopg.Error:
            with suppress(psycopg.Error):  # it is the same, or follows from it
                self._pipeline.sync()
            raise
        self._pipeline.sync()
        return [_rows(one) for one in cursors]

    def _execute(self, step: Step) -> psycopg.Cursor[Values]:
        cursor = self._connection.cursor(binary=True)
        statement = cast("LiteralString", step.statement)  # from a file of ours
        return cursor.execute(statement, step.values or None, prepare=self._prepares and bool(step.values))

    async def heed(self, seconds: float) -> bool:
        return any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1))

    async def cut(self) -> None:
        self._connection.pgconn.finish()
        with suppress(psycopg.Error):  # there is nothing left to leave
            self._block.__exit__(None, None, None)

    def forget(self) -> None:
        forget(self._connection, self._block)


def forget(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], *parts: Any) -> None:
    """Close the child's copy of a socket, which the server does not notice; libpq itself would say goodbye."""
    _forgotten.extend((connection, *parts))
    if not connection.closed:
        os.close(connection.pgconn.socket)


def _rows(cursor: psycopg.Cursor[Values]) -> list[Values]:
    return cursor.fetchall() if cursor.description is not None else []


class _Held:
    """A thread's lock or semaphore in the form of an asynchronous one."""

    def __init__(self, lock: threading.Lock | threading.Semaphore) -> None:
        self._lock = lock

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class BlockingPort:
    """See `Port`."""

    blocking = True

    async def connect(self, conninfo: str, seconds: float, *, prepares: bool) -> BlockingWire:
        connection = _Bounded.connect(conninfo, autocommit=True, prepare_threshold=0 if prepares else None)
        connection.answer_seconds = seconds
        block = connection.pipeline()
        return BlockingWire(connection, block, block.__enter__(), prepares=prepares)

    def mutex(self) -> _Held:
        return _Held(threading.Lock())

    def places(self, count: int) -> _Held:
        return _Held(threading.Semaphore(count))

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)
