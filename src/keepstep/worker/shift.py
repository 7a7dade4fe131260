"""What a worker does, from its beginning to its end.

round ──► claim what is ready, due or left behind, as much as there is room for
  ▲          ├── something: each run is carried by one of the crew
  │          ├── no room: wait until one has ended
  └──────────┴── nothing: wait until something has changed, or something is due, or the poll interval is over

stop ──► no more claims; steps end, within the grace time; what is held then is given back
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol

from keepstep.engine import claims
from keepstep.engine.claims import Claim
from keepstep.engine.context import Engine
from keepstep.engine.gates import ask_after_deaths
from keepstep.errors import KeepstepError, ReadOnly, StoreError, TooManyDeaths
from keepstep.flows.carrying import MakeHands, carry
from keepstep.flows.flow import Flow
from keepstep.flows.starting import engine_of
from keepstep.flows.versions import Crowd
from keepstep.store.base import View
from keepstep.worker.alive import Alive
from keepstep.worker.log import Log
from keepstep.worker.options import Options
from keepstep.worker.turns import Turns

LISTEN_SECONDS = 0.1
"""One wait for a change; so long it may take until a worker that has nothing to do sees that it is to stop."""
TROUBLE_SECONDS_FIRST = 0.1
TROUBLE_SECONDS_MOST = 10.0
"""While the store cannot be reached, it is asked less and less often."""
INTERRUPTED_REST_SECONDS = 1.0
"""A run that was interrupted is ready at once; whoever carried it waits before claiming another."""
DUE_MAX = 10_000
"""Times at which runs that slept here are due; of more than that, polling finds the rest."""


class Crew(Protocol):
    """Those who carry runs at once: threads or tasks."""

    @property
    def busy(self) -> int: ...

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None: ...

    def ring(self) -> None: ...

    async def wait(self, seconds: float) -> None: ...

    async def rest(self, seconds: float, until: Callable[[], bool]) -> None: ...

    async def interrupt(self) -> None: ...


class Shift:
    """One worker's work."""

    def __init__(
        self, engine: Callable[[], Engine], crowd: Crowd, how: Options, crew: Crew, make_hands: MakeHands
    ) -> None:
        self._engine = engine
        self._crowd = crowd
        self._how = how
        self._crew = crew
        self._make_hands = make_hands
        self._log = Log()
        self._alive = Alive(how.alive)
        self._turns = Turns(crowd.names)
        self._held: dict[str, Claim] = {}
        self._due: list[int] = []
        self._strangers: set[tuple[str, str | None]] = set()
        self._shy: dict[str, float] = {}
        """Workflows of which there are only runs that are left alone, and until when they are not asked for again."""
        self._trouble_seconds = TROUBLE_SECONDS_FIRST
        self._stops = False
        self._hurries = False

    @property
    def carrying(self) -> tuple[str, ...]:
        """The ids of the runs that are being carried."""
        return tuple(self._held)

    def stop(self, *, at_once: bool) -> None:
        """Claim nothing any more; from any thread, also from a signal's handler."""
        self._hurries = self._hurries or at_once
        self._stops = True

    def stopping(self) -> bool:
        """No further step is to begin."""
        return self._stops

    def begins(self, claim: Claim, step: str) -> None:
        """A step begins."""
        self._log.begins(claim, step)

    def raised(self, claim: Claim, step: str, error: Exception) -> None:
        """A step raised, and is tried again."""
        self._log.raised(claim, step, error)

    async def work(self) -> None:
        """Work until told to stop, and end in good order."""
        self._log.began(self._crowd.names, self._how.concurrency)
        try:
            while not self._stops:
                await self._round()
        finally:
            self._stops = True
            await self._end()
            self._log.ended()

    # --- a round -------------------------------------------------------------------------------------------------

    async def _round(self) -> None:
        self._alive.touch()
        engine = self._engine()
        try:
            seen = await engine.store.changes(None, 0)
            claimed = await self._claim(engine)
        except StoreError as error:
            await self._trouble(error)
            return
        self._trouble_seconds = TROUBLE_SECONDS_FIRST
        if self._crew.busy >= self._how.concurrency:
            await self._crew.wait(LISTEN_SECONDS)
        elif not claimed:
            await self._listen(engine, seen)

    async def _claim(self, engine: Engine) -> int:
        """Claim as much as there is room for, the workflows in turn, and have it carried."""
        claimed = 0
        now = time.monotonic()
        self._shy = {name: until for name, until in self._shy.items() if until > now}
        for name, share in self._turns.shares(self._how.concurrency - self._crew.busy, list(self._shy)):
            self._strangers.clear()
            found = await claims.claim_due(engine, [name], share, self._fits)
            self._turns.took(name, len(found))
            for claim in found:
                self._start(engine, claim)
            if self._strangers and not found:
                self._shy[name] = now + self._how.poll_seconds
            for workflow, version in self._strangers:
                self._log.strange(workflow, version, self._crowd.versions(workflow))
            claimed += len(found)
        return claimed

    def _fits(self, view: View) -> bool:
        """Whether this worker can carry a run."""
        assert view.row is not None, "only what is there is claimed"
        if self._crowd.flow_for(view.row) is not None:
            return True
        self._strangers.add((view.row.workflow, view.row.flow_version))
        return False

    def _start(self, engine: Engine, claim: Claim) -> None:
        flow = self._crowd.flow_for(claim.row)
        assert flow is not None, "only what fits is claimed"
        self._held[claim.run_id] = claim
        claim.engine = engine_of(engine, flow)
        self._log.claimed(claim)
        self._log.compare(claim, flow)
        self._crew.start(partial(self._carry, flow, claim))

    async def _listen(self, engine: Engine, seen: int) -> None:
        """Wait until something has changed or is due, at most until the poll interval is over."""
        now_us = engine.clock.now_us()
        end_us = now_us + int(self._how.poll_seconds * 1e6)
        while self._due and self._due[0] <= now_us:
            heapq.heappop(self._due)
        if self._due:
            end_us = min(end_us, self._due[0])
        while not self._stops:
            left = max(0.0, (end_us - engine.clock.now_us()) / 1e6)
            try:
                found = await engine.store.changes(seen, min(left, LISTEN_SECONDS))
            except StoreError as error:
                await self._trouble(error)
                return
            if found != seen or not left:
                return

    async def _trouble(self, error: StoreError) -> None:
        """The store could not be reached: wait, longer each time."""
        if isinstance(error, ReadOnly):
            raise error
        self._log.trouble(error, self._trouble_seconds)
        await self._crew.rest(self._trouble_seconds, self.stopping)
        self._trouble_seconds = min(self._trouble_seconds * 2, TROUBLE_SECONDS_MOST)

    # --- one run -------------------------------------------------------------------------------------------------

    async def _carry(self, flow: Flow, claim: Claim) -> None:
        """Carry a run as far as it goes; whatever it raises is the run's, never the worker's."""
        raised: BaseException | None = None
        try:
            if claim.row.deaths >= self._how.deaths:
                await self._give_up(claim)
            else:
                await carry(flow, claim, self._make_hands, self)
        except BaseException as error:  # noqa: BLE001 - a step may raise anything, SystemExit among it
            raised = error
        finally:
            self._held.pop(claim.run_id, None)
        self._log.left(claim, raised)
        self._remember_due(claim)
        if raised is not None and claim.row.status in ("ready", "running"):
            await self._crew.rest(INTERRUPTED_REST_SECONDS, self.stopping)

    async def _give_up(self, claim: Claim) -> None:
        """End a run that has ended its worker too often."""
        error = TooManyDeaths(claim.run_id, claim.row.next, claim.row.deaths)
        self._log.given_up(claim)
        await claims.fail(claim, error, reason="deaths", asking=[ask_after_deaths(claim, f"{error} Try it again?")])

    def _remember_due(self, claim: Claim) -> None:
        if claim.row.status == "sleeping" and len(self._due) < DUE_MAX:
            for wait in claim.row.waits:
                if wait.until_us is not None:
                    heapq.heappush(self._due, wait.until_us)

    # --- the end -------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Let steps end within the grace time, and give back what is held after that."""
        self._log.stops(self._crew.busy)
        end = time.monotonic() + self._how.grace_seconds
        self._crew.ring()
        while self._held and not self._hurries and (left := end - time.monotonic()) > 0:
            self._alive.touch()
            await self._crew.wait(min(left, LISTEN_SECONDS))
        await self._crew.interrupt()
        for claim in list(self._held.values()):
            try:
                await claims.release(claim, "interrupted")
            except KeepstepError as error:  # the lease will pass, or the store's close gives it back
                self._log.trouble(error, 0)
