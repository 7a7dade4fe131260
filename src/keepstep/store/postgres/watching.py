"""Waiting until something has changed.

Every transaction that writes a run draws a number from a sequence, which costs next to nothing and keeps nobody
waiting, but is seen at once, before the transaction ends. Whoever looks in between would take the change for one that
was there to be seen. So writers hold a lock that they share while they have drawn and not ended; whoever looks tries to
take it alone, and where that fails, the number says that something is under way: it is another one later.

Changes after which a run may be claimed are told by NOTIFY as well, so that nobody has to look often. Behind a pooler
there is no listening; there everything is found by looking.
"""

from __future__ import annotations

import time
from typing import Protocol

from keepstep.errors import WrongUse
from keepstep.store.postgres.lines import Lines
from keepstep.store.postgres.port import Port, Step
from keepstep.store.postgres.writing import pulse_key

HEED_SECONDS = 0.25
"""So long at most a change stays unseen that nobody told of."""
LOOK_SECONDS_FIRST = 0.005
LOOK_SECONDS_MOST = 0.1
"""The same where there is no listening."""
LOOKS = 3
"""So often it is looked whether what is under way ends; mostly it is somebody else who looks."""
BETWEEN_SECONDS = 0.001


class Clock(Protocol):
    """Lets the time pass."""

    def sleep(self, seconds: float) -> None: ...


class Watch:
    """Watches one store."""

    def __init__(self, lines: Lines, port: Port, clock: Clock | None) -> None:
        self._lines = lines
        self._port = port
        self._clock = clock
        """Whose time passes while somebody waits; the real one when None."""
        self._listens = clock is None and not lines.place.by_pooler
        self._listening = 0
        """To which connection of the line it has been said that we listen."""

    async def wait(self, seen: int | None, seconds: float) -> int:
        """The number, once it is another one than `seen`; at most so long."""
        number = await self._look()
        waited, pause = 0.0, LOOK_SECONDS_FIRST
        while number == seen and waited < seconds:
            pause = min(pause, seconds - waited)
            try:
                waited += await self._pass(min(HEED_SECONDS, seconds - waited) if self._listens else pause)
                number = await self._look()
            except WrongUse:  # the store was closed meanwhile, which is no change
                break
            pause = min(pause * 1.5, LOOK_SECONDS_MOST)
        return number

    async def _pass(self, seconds: float) -> float:
        """Let some time pass, or until it is told that something changed; how long it was."""
        if self._clock is not None:
            self._clock.sleep(seconds)
            await self._port.pause(0)
            return seconds
        begin = time.monotonic()
        if self._listens:
            async with self._lines.using(self._lines.watch) as line:
                await line.heed(seconds)
        else:
            await self._port.pause(seconds)
        return time.monotonic() - begin

    async def _look(self) -> int:
        steps = [Step(self._lines.sql("count_beats")), Step(self._lines.sql("are_all_seen"), self._key)]
        number = 0
        for _ in range(LOOKS):
            async with self._lines.using(self._lines.watch) as line:
                await self._listen()
                [[(last, is_called)], [(all_seen,)]] = await self._lines.again(line, steps)
            number = (last if is_called else 0) * 2 + (0 if all_seen else 1)
            if all_seen:
                break
            await self._port.pause(BETWEEN_SECONDS)
        return number

    @property
    def _key(self) -> dict[str, int]:
        return {"pulse": pulse_key(self._lines.place.schema)}

    async def _listen(self) -> None:
        """Say that we listen, on a connection that does not know it yet."""
        line = self._lines.watch
        if self._listens:
            await line.wire()
            if self._listening != line.made:
                await self._lines.again(line, [Step(self._lines.sql("listen"))])
                self._listening = line.made

    def forget(self) -> None:
        """In a forked child: nobody listens yet."""
        self._listening = 0
