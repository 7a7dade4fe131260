"""The store in memory: plain dicts under one lock. It is the specification of what a store does."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Protocol

from keepstep.errors import WrongUse
from keepstep.log.chain import Stored
from keepstep.log.fold import Fold
from keepstep.log.ledger import LedgerEntry
from keepstep.store.base import (
    Append,
    Committed,
    Decision,
    Entry,
    Holder,
    Outcome,
    Page,
    Query,
    Renewal,
    Row,
    View,
    Weight,
)
from keepstep.store.listing import is_due, page, place
from keepstep.store.plan import Kept, Plan


class Clock(Protocol):
    """Tells the time and waits."""

    def now_us(self) -> int: ...

    def wait(self, stop: threading.Event, seconds: float) -> bool: ...


class _Run:
    """One run: its log, and what its log adds up to."""

    def __init__(self, row: Fold) -> None:
        self.row = row
        self.records: dict[int, Stored] = {}
        self.ledger: dict[bytes, LedgerEntry] = {}

    def add(self, append: Append) -> None:
        assert isinstance(append.row, Fold)
        self.row = append.row
        self.records.update((one.seq, one) for one in append.records)
        self.ledger.update((one.key, one) for one in append.ledger)
        for first, last in append.dropped:
            for seq in range(first, last + 1):
                self._store_anew(seq, None)
        for seq, body in append.renewed:
            self._store_anew(seq, body)

    def _store_anew(self, seq: int, body: bytes | None) -> None:
        if seq in self.records:
            self.records[seq] = self.records[seq]._replace(body=body)


class _Content:
    """What the stores of one name share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.runs: dict[str, _Run] = {}
        self.graves: dict[str, tuple[int, int]] = {}
        """Run id → (incarnation, epoch) of the last deleted life."""
        self.leases: dict[str, int] = {}
        """Owner → until when its lease runs."""
        self.changes = 0
        self.waiting: set[threading.Event] = set()

    def changed(self) -> None:
        self.changes += 1
        for one in self.waiting:
            one.set()


_shared: dict[tuple[int, str], _Content] = {}
"""By process, so that a forked child does not take an inherited copy for the shared thing."""


class MemoryStore:
    """Runs live in this process and end with it.

    Stores of the same name share their content, which then stays for the life of the process; without a name it is
    private, and gone when the store is closed.
    """

    read_only = False
    blocking = True

    def __init__(self, clock: Clock, name: str = "") -> None:
        self.url = f"memory:{name}"
        self._clock = clock
        self._pid = os.getpid()
        self._closed = False
        self._content = _shared.setdefault((self._pid, name), _Content()) if name else _Content()

    async def open(self) -> None:
        with self._held():
            pass

    async def commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        with self._held() as content:
            plan = self._plan(content)
            outcomes = [plan.take(entry) for entry in batch]
            self._write(content, plan)
            return outcomes

    async def view(self, run_id: str) -> View:
        with self._held() as content:
            return self._plan(content).view(run_id)

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
        with self._held() as content:
            if run_id not in content.runs:
                return []
            run = content.runs[run_id]
            last = run.row.seq if until is None else min(until, run.row.seq)
            seqs = range(max(after, 0) + 1, last + 1)
            some = islice(reversed(seqs) if newest_first else seqs, limit)
            found = [run.records[seq] for seq in some if seq in run.records]
            return found if bodies else [one._replace(body=None) for one in found]

    async def pick(self, run_id: str, seqs: Sequence[int]) -> list[Stored]:
        with self._held() as content:
            records = content.runs[run_id].records if run_id in content.runs else {}
            return [records[seq] for seq in sorted(set(seqs)) if seq in records]

    async def effects(self, run_id: str, keys: Sequence[bytes] | None = None) -> list[LedgerEntry]:
        with self._held() as content:
            ledger = content.runs[run_id].ledger if run_id in content.runs else {}
            found = ledger.values() if keys is None else (ledger[key] for key in set(keys) if key in ledger)
            return sorted(found, key=lambda one: one.began)

    async def rows(self, query: Query, cursor: str | None, limit: int) -> Page:
        with self._held() as content:
            return page(self._all(content), query, cursor, limit, self._clock.now_us())

    async def claim(
        self, workflows: Sequence[str] | None, limit: int, decide: Callable[[View], Append | None]
    ) -> list[Committed]:
        with self._held() as content:
            plan = self._plan(content)
            due = [row for row in self._all(content) if is_due(row, plan.now_us)]
            claimed: list[Committed] = []
            for row in sorted(due, key=lambda row: place(row, "changed")):
                if len(claimed) == limit:
                    break
                if workflows is None or row.fold.workflow in workflows:
                    outcome = plan.take(Decision(row.run_id, decide))
                    if isinstance(outcome, Committed) and outcome.append is not None:
                        claimed.append(outcome)
            self._write(content, plan)
            return claimed

    async def delete(self, run_id: str, decide: Callable[[View], None]) -> bool:
        with self._held() as content:
            view = self._plan(content).view(run_id)
            if view.row is None:
                return False
            decide(view)
            del content.runs[run_id]
            content.graves[run_id] = (view.row.incarnation, view.row.epoch)
            content.changed()
            return True

    async def enlist(self, owner: str, seconds: float) -> None:
        with self._held() as content:
            content.leases[owner] = self._until_us(seconds)

    async def renew(self, owner: str, seconds: float) -> Renewal:
        with self._held() as content:
            stands = owner in content.leases
            if stands:
                content.leases[owner] = self._until_us(seconds)
            rows = ((run_id, run.row) for run_id, run in content.runs.items())
            held = {run_id: (row.seq, row.epoch) for run_id, row in rows if row.owner == owner}
            return Renewal(stands, self._clock.now_us(), held)

    async def retire(self, owner: str) -> None:
        with self._held() as content:
            content.leases.pop(owner, None)

    async def changes(self, seen: int | None, seconds: float) -> int:
        changed = threading.Event()
        with self._held() as content:
            if seen != content.changes:
                return content.changes
            content.waiting.add(changed)
        self._clock.wait(changed, seconds)
        with content.lock:
            content.waiting.discard(changed)
            return content.changes

    async def now(self) -> int:
        return self._clock.now_us()

    async def size(self, run_id: str | None) -> Weight:
        with self._held() as content:
            runs = [run for name, run in content.runs.items() if run_id in (None, name)]
            records = [one for run in runs for one in run.records.values()]
            head_bytes = sum(len(one.head) for one in records)
            body_bytes = sum(len(one.body or b"") for one in records)
            return Weight(len(runs), len(records), head_bytes, body_bytes, 0)

    async def backup(self, target: str) -> None:
        raise WrongUse("A store in memory has no backup. Open a directory or a SQLite file to keep runs.")

    def after_fork(self) -> None:
        """Nothing to forget: a child is known by its process id, and refused."""

    async def close(self) -> None:
        self._closed = True
        if self._pid == os.getpid():
            with self._content.lock:
                for one in self._content.waiting:
                    one.set()
        self._content = _Content()

    @contextmanager
    def _held(self) -> Generator[_Content]:
        """The content, while nobody else looks or writes."""
        if self._closed:
            raise WrongUse("This store is closed. Open another one.")
        if self._pid != os.getpid():
            raise WrongUse(
                "A store in memory stays with the process that opened it; this is a forked child, whose copy would "
                "go its own way. Open another store here, in a directory or a file if both are to see the same runs."
            )
        content = self._content
        with content.lock:
            yield content

    def _plan(self, content: _Content) -> Plan:
        def kept(run_id: str) -> Kept:
            run = content.runs.get(run_id)
            return Kept(run.row if run else None, content.graves.get(run_id, (0, 0)))

        now_us = self._clock.now_us()
        return Plan(now_us, kept, lambda owner: _holder(content, owner, now_us))

    def _write(self, content: _Content, plan: Plan) -> None:
        for run_id, appends in plan.appends.items():
            for append in appends:
                assert isinstance(append.row, Fold)
                run = content.runs.setdefault(run_id, _Run(append.row))
                run.add(append)
                content.graves.pop(run_id, None)
        if plan.appends:
            content.changed()

    def _all(self, content: _Content) -> Iterator[Row]:
        now_us = self._clock.now_us()
        for run_id, run in content.runs.items():
            owner = run.row.owner
            yield Row(run_id, run.row, None if owner is None else _holder(content, owner, now_us))

    def _until_us(self, seconds: float) -> int:
        return self._clock.now_us() + round(seconds * 1e6)


def _holder(content: _Content, owner: str, now_us: int) -> Holder:
    until_us = content.leases.get(owner, 0)
    return Holder(owner, until_us, stands=until_us > now_us)
