"""Connections that an event loop waits for. The form is that of `blocking`, with every wait awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, LiteralString, cast

import psycopg
from psycopg.errors import _WaitTimeout  # pyright: ignore[reportPrivateUsage]  # raised by the public `wait`
from psycopg.pq import ConnStatus, TransactionStatus

from keepstep.store.postgres.blocking import forget
from keepstep.store.postgres.port import Step, Values


class _Bounded(psycopg.AsyncConnection[Values]):
    """A connection that gives up on an answer which does not come."""

    answer_seconds: float = 60.0

    async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for an answer; without it in time, the connection is of no use any more."""
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        try:
            return await super().wait(gen, interval, self.answer_seconds)
        except _WaitTimeout:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"no answer came within {self.answer_seconds:g} s") from None


class LoopWire:
    """See `Wire`."""

    def __init__(self, connection: _Bounded, block: Any, pipeline: psycopg.AsyncPipeline, *, prepares: bool) -> None:
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
            cursors = [await self._execute(one) for one in steps]
        except psycopg.Error:
            with suppress(psycopg.Error):  # it is the same, or follows from it
                await self._pipeline.sync()
            raise
        await self._pipeline.sync()
        return [await _rows(one) for one in cursors]

    async def _execute(self, step: Step) -> psycopg.AsyncCursor[Values]:
        cursor = self._connection.cursor(binary=True)
        statement = cast("LiteralString", step.statement)  # from a file of ours
        return await cursor.execute(statement, step.values or None, prepare=self._prepares and bool(step.values))

    async def heed(self, seconds: float) -> bool:
        return bool([one async for one in self._connection.notifies(timeout=seconds, stop_after=1)])

    async def cut(self) -> None:
        self._connection.pgconn.finish()
        with suppress(psycopg.Error):  # there is nothing left to leave
            await self._block.__aexit__(None, None, None)

    def forget(self) -> None:
        forget(self._connection, self._block)


async def _rows(cursor: psycopg.AsyncCursor[Values]) -> list[Values]:
    return await cursor.fetchall() if cursor.description is not None else []


class LoopPort:
    """See `Port`."""

    blocking = False

    async def connect(self, conninfo: str, seconds: float, *, prepares: bool) -> LoopWire:
        connection = await _Bounded.connect(conninfo, autocommit=True, prepare_threshold=0 if prepares else None)
        connection.answer_seconds = seconds
        block = connection.pipeline()
        return LoopWire(connection, block, await block.__aenter__(), prepares=prepares)

    def mutex(self) -> asyncio.Lock:
        return asyncio.Lock()

    def places(self, count: int) -> asyncio.Semaphore:
        return asyncio.Semaphore(count)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
