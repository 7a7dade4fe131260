"""The store in a PostgreSQL database: the protocol's methods, each one transaction."""

from __future__ import annotations

import os
import platform
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from keepstep.errors import Damaged, ReadOnly, StoreBusy, WrongUse
from keepstep.log.chain import Stored
from keepstep.log.ledger import LedgerEntry
from keepstep.store.base import (
    Append,
    Busy,
    Committed,
    Decision,
    Entry,
    Outcome,
    Page,
    Query,
    Refused,
    Renewal,
    Row,
    View,
    Weight,
)  # fmt: skip
from keepstep.store.cursors import write_cursor
from keepstep.store.plan import Plan, obstacle_to
from keepstep.store.postgres import writing
from keepstep.store.postgres.batch import Batch, LeaseWanted
from keepstep.store.postgres.failures import CreatedMeanwhile
from keepstep.store.postgres.lines import TRIES, Line, Lines, Lost, was_too_slow
from keepstep.store.postgres.place import place_of
from keepstep.store.postgres.port import Port, Step, Values
from keepstep.store.postgres.reading import SEQ_MAX, Seen, holder_of, seen_of, stored
from keepstep.store.postgres.schema import prepare
from keepstep.store.postgres.search import claim_step, page_step
from keepstep.store.postgres.statements import Statements
from keepstep.store.postgres.texts import to_bytes
from keepstep.store.postgres.watching import Watch
from keepstep.store.sealed_rows import read_row

BUSY_SECONDS = 0.002
"""So long a pause is made when every run of a batch is locked elsewhere; a transaction takes about as long."""
CLAIM_PAGE = 64
"""How many due runs a claim looks at together, once those that it looked at first were not enough."""
CLAIM_LOOKS_MAX = 10_000
"""A claim that passed over so many runs gives up: it keeps them locked."""
DELETE_SECONDS = 20.0
"""So long a delete waits for whoever has the run locked."""
LONG_SECONDS = 600.0
"""What goes through a whole run, or the whole store, may take so long."""

T = TypeVar("T")


class Clock(Protocol):
    """Tells the time and waits."""

    def now_us(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...


class PostgresStore:
    """Runs live in one schema of a PostgreSQL database, which any number of processes and machines share."""

    def __init__(
        self,
        url: str,
        clock: Clock | None = None,
        *,
        read_only: bool = False,
        port: Port | None = None,
        agree: Callable[[int], None] | None = None,
    ) -> None:
        """Nothing is connected yet. `clock` tells the time in place of the database, in tests.

        `agree` is told what the time is by the database, so that whoever dates records can go by it.
        """
        place = place_of(url)
        self.url = place.url
        self.read_only = read_only
        self._given = url
        self._clock = clock
        self._agree = agree
        self._port = port or _blocking_port()
        self.blocking = self._port.blocking
        self._sql = Statements(place.schema)
        self._lines = Lines(place, self._port, self._sql)
        self._opening = self._port.mutex()
        self._watch = Watch(self._lines, self._port, clock)
        self.twin: PostgresStore | None = None
        """The same store in its blocking form, of one that an event loop waits for."""

    def on_loop(self) -> PostgresStore:
        """The same store in the form that an event loop waits for; closing it closes both."""
        from keepstep.store.postgres.looping import LoopPort

        store = PostgresStore(self._given, self._clock, read_only=self.read_only, port=LoopPort(), agree=self._agree)
        store.twin = self
        return store

    # --- opening and closing -------------------------------------------------------------------------------------

    async def open(self) -> None:
        async with self._opening:
            if not self._lines.opened:
                try:
                    await prepare(self._lines, read_only=self.read_only)
                except BaseException:
                    await self._lines.drop()  # who cannot open has nothing to close
                    raise
                self._lines.opened = True
        await self.now()

    def after_fork(self) -> None:
        self._opening = self._port.mutex()
        self._lines.forget()
        self._watch.forget()
        if self.twin is not None:
            self.twin.after_fork()

    async def close(self) -> None:
        await self._lines.close()
        if self.twin is not None:
            await self.twin.close()

    # --- runs ----------------------------------------------------------------------------------------------------

    async def commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        await self._ready_to_write()
        if not batch:
            return []
        appends = [entry for entry in batch if isinstance(entry, Append) and writing.is_quiet(entry)]
        is_plain = len(appends) == len(batch) == len({entry.run_id for entry in batch})
        if is_plain and any(append.urgent for append in appends):
            outcomes = await self._append(appends)
        else:
            outcomes = await self._again(lambda: self._decided(batch))
        if all(isinstance(one, Busy) for one in outcomes):
            await self._port.pause(BUSY_SECONDS)
        return outcomes

    async def _append(self, appends: Sequence[Append]) -> list[Outcome]:
        """Appends that move nothing, in one statement. Sent twice, it writes once: then the logs have moved on."""
        lines = self._lines
        step = writing.quiet_append(self._sql, appends, self._told_us())
        steps = [*lines.begin(), step, Step("COMMIT")] if lines.place.by_pooler else [step]
        async with lines.using(lines.writer) as line:
            found = (await lines.again(line, steps))[steps.index(step)]
            written = {run_id for run_id, _ in found}
            late = [append for append in appends if to_bytes(append.run_id) not in written]
            seen = {one.run_id: one for one in await self._see(line, [one.run_id for one in late])} if late else {}
        now_us = found[0][1] if found else 0
        return [
            _late(append, seen[append.run_id]) if append.run_id in seen else Committed(append, now_us)
            for append in appends
        ]

    async def _decided(self, batch: Sequence[Entry]) -> list[Outcome]:
        """Anything else: lock and read, decide, write; two round trips."""
        lines, sql = self._lines, self._sql
        urgent = any(isinstance(entry, Decision) or entry.urgent for entry in batch)
        async with lines.using(lines.writer) as line:
            known = await self._locked(line, [entry.run_id for entry in batch], urgent=urgent)
            plan, outcomes = await self._planned(line, known, batch)
            if plan.appends:
                steps = writing.write(sql, plan.appends, known.before(plan))
                is_safe = all(isinstance(entry, Append) and entry.after_seq for entry in batch)
                await self._finish(line, steps, is_safe=is_safe)
            else:
                await line.undo()
            return outcomes

    async def view(self, run_id: str) -> View:
        await self._ready()
        values = {"ids": [to_bytes(run_id)], "now_us": self._told_us()}
        [[found]] = await self._lines.read(Step(self._sql("read_runs"), values))
        return seen_of(found).view()

    async def records(
        self,
        run_id: str,
        *,
        after: int = 0,
        until: int | None = None,
        bodies: bool = True,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Stored]:
        await self._ready()
        last = SEQ_MAX if until is None else min(until, SEQ_MAX)
        values = {"id": to_bytes(run_id), "after": min(after, SEQ_MAX), "until": max(last, -1), "most": limit}
        text = self._sql.directed("read_records" if bodies else "read_heads", newest_first=newest_first)
        [found] = await self._lines.read(Step(text, values))
        return [stored(one) for one in found]

    async def pick(self, run_id: str, seqs: Sequence[int]) -> list[Stored]:
        await self._ready()
        wanted = [seq for seq in set(seqs) if 0 < seq <= SEQ_MAX]
        [found] = await self._lines.read(Step(self._sql("pick_records"), {"id": to_bytes(run_id), "seqs": wanted}))
        return sorted(stored(one) for one in found)

    async def effects(self, run_id: str, keys: Sequence[bytes] | None = None) -> list[LedgerEntry]:
        await self._ready()
        name = "read_effects" if keys is None else "find_effects"
        values = {"id": to_bytes(run_id)} | ({} if keys is None else {"keys": list(keys)})
        [found] = await self._lines.read(Step(self._sql(name), values))
        return sorted((LedgerEntry(*one) for one in found), key=lambda one: one.began)

    async def rows(self, query: Query, cursor: str | None, limit: int) -> Page:
        await self._ready()
        step = page_step(self._sql, query, cursor, max(limit, 0) + 1, self._told_us())
        if step is None:
            return Page([], None)
        [found] = await self._lines.read(step)
        more = len(found) > limit > 0
        end = write_cursor(query, found[limit - 1][0], found[limit - 1][1].decode()) if more else None
        return Page([_row(one) for one in found[: max(limit, 0)]], end)

    async def claim(
        self, workflows: Sequence[str] | None, limit: int, decide: Callable[[View], Append | None]
    ) -> list[Committed]:
        await self._ready_to_write()
        if limit < 1 or workflows == []:
            return []
        return await self._again(lambda: self._claimed(workflows, limit, decide))

    async def _claimed(
        self, workflows: Sequence[str] | None, limit: int, decide: Callable[[View], Append | None]
    ) -> list[Committed]:
        """Lock due runs page by page, the next page only when too many of this one were passed over."""
        known, claimed, start, looked = Batch([], set()), list[Committed](), None, 0
        plan: Plan | None = None
        async with self._lines.reader() as line:
            begin = self._lines.begin()
            while len(claimed) < limit:
                page = limit if start is None else CLAIM_PAGE
                step = claim_step(self._sql, workflows, start, page, self._told_us())
                found = (await line.send([*begin, step], within=start is not None))[-1]
                begin = []
                known.add([_seen(one) for one in found])
                known.now_us = max(known.now_us, *(one[-1] for one in found)) if found else known.now_us
                plan = plan or known.plan()
                for one in found:
                    if len(claimed) == limit:
                        break
                    outcome = known.take(plan, Decision(one[1].decode(), decide))
                    if isinstance(outcome, Committed) and outcome.append is not None:
                        claimed.append(outcome)
                looked += len(found)
                if len(found) < page or looked >= CLAIM_LOOKS_MAX:
                    break
                start = (found[-1][0], found[-1][1])
            if plan is None or not claimed:
                await line.undo()
                return []
            await self._finish(line, writing.write(self._sql, plan.appends, known.before(plan)), is_safe=False)
            return claimed

    async def delete(self, run_id: str, decide: Callable[[View], None]) -> bool:
        await self._ready_to_write()
        waited = 0.0
        while (outcome := await self._again(lambda: self._deleted(run_id, decide))) is None:
            if waited >= DELETE_SECONDS:
                raise StoreBusy(f"Run {run_id!r} was locked all the time; nothing was deleted. Try again.")
            await self._port.pause(BUSY_SECONDS)
            waited += BUSY_SECONDS
        return outcome

    async def _deleted(self, run_id: str, decide: Callable[[View], None]) -> bool | None:
        """Whether there was one to delete; None when it is locked elsewhere."""
        async with self._lines.reader() as line:
            known = await self._locked(line, [run_id])
            plan, outcomes = await self._planned(line, known, [Decision(run_id, _nothing)])
            if isinstance(outcomes[0], Busy):
                await line.undo()
                return None
            view = plan.view(run_id)
            if view.row is None:
                await line.undo()
                return False
            decide(view)
            steps = writing.erase(self._sql, run_id, view.row)
            await self._finish(line, [one._replace(seconds=LONG_SECONDS) for one in steps], is_safe=False)
            return True

    # --- owners --------------------------------------------------------------------------------------------------

    async def enlist(self, owner: str, seconds: float) -> None:
        put = {"host": platform.node(), "pid": os.getpid(), **self._lease(owner, seconds)}
        await self._beat(
            Step(self._sql("put_owner"), put), Step(self._sql("clear_owners"), {"now_us": self._told_us()})
        )

    async def renew(self, owner: str, seconds: float) -> Renewal:
        renewed, held, [(now_us,)] = await self._beat(
            Step(self._sql("renew_owner"), self._lease(owner, seconds)),
            Step(self._sql("read_held"), {"owner": to_bytes(owner)}),
            Step(self._sql("read_now"), {"now_us": self._told_us()}),
        )
        self._learn(now_us)
        runs = {one[0].decode(): (one[1], read_row(one[0].decode(), *one[1:]).epoch) for one in held}
        return Renewal(bool(renewed), now_us, runs)

    async def retire(self, owner: str) -> None:
        await self._beat(
            Step(self._sql("erase_owner"), {"owner": to_bytes(owner)}),
            Step(self._sql("clear_owners"), {"now_us": self._told_us()}),
        )

    async def _beat(self, *steps: Step) -> list[list[Values]]:
        """A transaction about leases. They end with the power anyway, so no disk is waited for."""
        await self._ready_to_write()
        lines = self._lines
        begin = lines.begin(urgent=False)
        async with lines.using(lines.heart) as line:
            found = await lines.again(line, [*begin, *steps, Step("COMMIT")])
            return found[len(begin) : -1]

    def _lease(self, owner: str, seconds: float) -> dict[str, object]:
        return {"owner": to_bytes(owner), "lease_us": round(seconds * 1e6), "now_us": self._told_us()}

    # --- the whole -----------------------------------------------------------------------------------------------

    async def changes(self, seen: int | None, seconds: float) -> int:
        await self._ready()
        return await self._watch.wait(seen, seconds)

    async def now(self) -> int:
        await self._ready()
        [[(now_us,)]] = await self._lines.read(Step(self._sql("read_now"), {"now_us": self._told_us()}))
        self._learn(now_us)
        return now_us

    async def size(self, run_id: str | None) -> Weight:
        await self._ready()
        if run_id is None:
            step = Step(self._sql("weigh_all"), {"schema": f'"{self._lines.place.schema}"'}, LONG_SECONDS)
        else:
            step = Step(self._sql("weigh_run"), {"id": to_bytes(run_id)}, LONG_SECONDS)
        [[found]] = await self._lines.read(step)
        return Weight(*found)

    async def backup(self, target: str) -> None:
        schema = self._lines.place.schema
        raise WrongUse(f"A PostgreSQL store is copied by PostgreSQL's own tools: pg_dump --schema={schema} ...")

    # --- inside --------------------------------------------------------------------------------------------------

    async def _ready(self) -> None:
        if not self._lines.opened:
            await self.open()

    async def _ready_to_write(self) -> None:
        if self.read_only:
            raise ReadOnly(f"{self.url} was opened for reading. Open it without read_only=True to write.")
        await self._ready()

    async def _locked(self, line: Line, run_ids: Sequence[str], *, urgent: bool = True) -> Batch:
        """Begin a transaction, lock these runs and read them."""
        sql = self._sql
        ids = sorted({to_bytes(run_id) for run_id in run_ids})
        keys = [writing.lock_key(sql.schema, one.decode()) for one in ids]
        read = Step(sql("read_locked"), {"ids": ids, "keys": keys, "now_us": self._told_us()})
        steps = [*self._lines.begin(urgent=urgent), Step(sql("lock_runs"), {"ids": ids}), read]
        *_, locked, found = await line.send(steps)
        return Batch([seen_of(one) for one in found], {one.decode() for (one,) in locked})

    async def _planned(self, line: Line, known: Batch, batch: Sequence[Entry]) -> tuple[Plan, list[Outcome]]:
        """Decide every entry. Decisions are pure, so they are made again when a lease has to be read first."""
        while True:
            plan = known.plan()
            try:
                return plan, [known.take(plan, entry) for entry in batch]
            except LeaseWanted as wanted:
                step = Step(self._sql("read_lease"), {"owner": to_bytes(wanted.owner)})
                [found] = await line.send([step], within=True)
                known.leases[wanted.owner] = found[0][0] if found else None

    async def _finish(self, line: Line, steps: Sequence[Step], *, is_safe: bool) -> None:
        """Write and commit. If the answer is lost, only what `is_safe` may be sent again: it fits a log only once."""
        try:
            await line.send([*steps, Step("COMMIT")], within=True)
        except Lost as lost:
            if is_safe and not was_too_slow(lost):
                raise
            raise self._lines.unknown(lost) from lost.__cause__

    async def _again(self, work: Callable[[], Awaitable[T]]) -> T:
        """A transaction, from its beginning when its connection was lost before it could have been committed."""
        for tried in range(TRIES):
            try:
                return await work()
            except Lost as lost:
                if tried == TRIES - 1 or was_too_slow(lost):
                    raise self._lines.unknown(lost) from lost.__cause__
            except CreatedMeanwhile:
                if tried == TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    async def _see(self, line: Line, run_ids: Sequence[str]) -> list[Seen]:
        values = {"ids": [to_bytes(run_id) for run_id in run_ids], "now_us": self._told_us()}
        [found] = await self._lines.again(line, [Step(self._sql("read_runs"), values)])
        return [seen_of(one) for one in found]

    def _told_us(self) -> int | None:
        """The time that a test's clock tells; None when it is the database's."""
        return None if self._clock is None else self._clock.now_us()

    def _learn(self, now_us: int) -> None:
        if self._agree is not None:
            self._agree(now_us)


def _nothing(view: View) -> None:
    """A decision to write nothing: whether the run is there, and ours to delete."""


def _late(append: Append, seen: Seen) -> Outcome:
    """Why an append was not written; when it would fit, somebody had the run locked."""
    try:
        return obstacle_to(append, seen.view()) or Busy()
    except Damaged as error:
        return Refused(error)


def _seen(values: Values) -> Seen:
    _, id_bytes, seq, digest, sealed, until_us, now_us = values
    return seen_of((id_bytes, seq, digest, sealed, until_us, None, None, True, now_us))


def _row(values: Values) -> Row:
    seen = _seen(values)
    fold = seen.row()
    assert fold is not None, "what was found was joined"
    return Row(seen.run_id, fold, holder_of(fold, seen.until_us, seen.now_us))


def _blocking_port() -> Port:
    from keepstep.store.postgres.blocking import BlockingPort

    return BlockingPort()
