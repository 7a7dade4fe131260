"""The store in a directory: transactions under one lock, made of lines in files."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Protocol

from keepstep.errors import Damaged, ReadOnly, WrongUse
from keepstep.log.chain import Stored
from keepstep.log.ledger import LedgerEntry
from keepstep.store.base import (
    Append,
    Committed,
    Decision,
    Entry,
    Outcome,
    Page,
    Query,
    Renewal,
    Row,
    View,
    Weight,
)
from keepstep.store.directory.content import line_of, other_bodies, rewritten
from keepstep.store.directory.files import Files, asking
from keepstep.store.directory.folder import Folder
from keepstep.store.directory.leases import Leases
from keepstep.store.directory.lines import Tombstone, tombstone_line
from keepstep.store.directory.names import SUFFIX, file_name
from keepstep.store.directory.run_file import RunFile
from keepstep.store.directory.writing import Writing
from keepstep.store.listing import is_due, page, place
from keepstep.store.places import check_place
from keepstep.store.plan import Kept, Plan

FILES_KNOWN_MAX = 4096
"""Of so many files it is remembered what they say; an index takes about 100 bytes per commit."""
POLL_SECONDS = 0.05
"""How late a change is noticed: a folder tells nobody."""


class Clock(Protocol):
    """Tells the time and sleeps."""

    def now_us(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...


class DirectoryStore:
    """Runs live in files that people can read."""

    blocking = True

    def __init__(
        self, path: str | os.PathLike[str], clock: Clock, *, read_only: bool = False, files: Files | None = None
    ) -> None:
        self.path = Path(path).absolute()
        self.url = f"dir:{self.path}"
        self.read_only = read_only
        self._clock = clock
        self._files = files or Files()
        self._folder = Folder(self._files, self.path, read_only=read_only)
        self._leases = Leases(self._files, self._folder.leases, self._folder.owners)
        self._mutex = threading.Lock()
        self._known: dict[str, RunFile] = {}
        """By file name, the last used last."""
        self._closed = False

    async def open(self) -> None:
        self._folder.open()

    async def commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        with self._writing():
            plan = self._plan()
            outcomes = [plan.take(entry) for entry in batch]
            self._write(plan)
            return outcomes

    async def view(self, run_id: str) -> View:
        with self._reading():
            return self._plan().view(run_id)

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
        with self._reading():
            found = self._file(run_id).records(after, until, newest_first=newest_first)
            some = islice(found, limit)
            return list(some) if bodies else [one._replace(body=None) for one in some]

    async def pick(self, run_id: str, seqs: Sequence[int]) -> list[Stored]:
        with self._reading():
            return self._file(run_id).records_at(seqs)

    async def effects(self, run_id: str, keys: Sequence[bytes] | None = None) -> list[LedgerEntry]:
        with self._reading():
            ledger = self._file(run_id).ledger
            found = ledger.values() if keys is None else (ledger[key] for key in set(keys) if key in ledger)
            return sorted(found, key=lambda one: one.began)

    async def rows(self, query: Query, cursor: str | None, limit: int) -> Page:
        with self._reading():
            now_us = self._clock.now_us()
            return page((row for row, _ in self._all(now_us)), query, cursor, limit, now_us)

    async def claim(
        self, workflows: Sequence[str] | None, limit: int, decide: Callable[[View], Append | None]
    ) -> list[Committed]:
        with self._writing():
            plan = self._plan()
            # A damaged run is nobody's to claim; it must not keep the others from being claimed either.
            rows = [row for row, file in self._all(plan.now_us) if file.damage is None]
            due = [row for row in rows if is_due(row, plan.now_us)]
            claimed: list[Committed] = []
            for row in sorted(due, key=lambda row: place(row, "changed")):
                if len(claimed) == limit:
                    break
                if workflows is None or row.fold.workflow in workflows:
                    outcome = plan.take(Decision(row.run_id, decide))
                    if isinstance(outcome, Committed) and outcome.append is not None:
                        claimed.append(outcome)
            self._write(plan)
            return claimed

    async def delete(self, run_id: str, decide: Callable[[View], None]) -> bool:
        with self._writing():
            plan = self._plan(sound=False)
            view = plan.view(run_id)
            if view.row is None:
                return False
            decide(view)
            stone = Tombstone(view.row.incarnation, view.row.epoch, plan.now_us)
            file = self._file(run_id)
            batch = self._folder.count_up()
            with asking(file.path, "write to"), Writing(self._files, self._folder.runs) as writing:
                writing.replace(file, tombstone_line(run_id, batch, stone))
            return True

    async def enlist(self, owner: str, seconds: float) -> None:
        with self._alone():
            self._refuse_writing()
            self._leases.enlist(owner, self._clock.now_us(), self._until_us(seconds))

    async def renew(self, owner: str, seconds: float) -> Renewal:
        with self._reading():
            self._refuse_writing()
            stands = self._leases.renew(owner, self._until_us(seconds))
            now_us = self._clock.now_us()
            rows = [row for row, _ in self._all(now_us) if row.fold.owner == owner]
            return Renewal(stands, now_us, {row.run_id: (row.fold.seq, row.fold.epoch) for row in rows})

    async def retire(self, owner: str) -> None:
        with self._alone():
            self._refuse_writing()
            self._leases.retire(owner)

    async def changes(self, seen: int | None, seconds: float) -> int:
        until_us = self._until_us(seconds)
        while True:
            with self._reading():
                number = self._folder.changes()
            left = (until_us - self._clock.now_us()) / 1e6
            if number != seen or left <= 0:
                return number
            self._clock.sleep(min(POLL_SECONDS, left))

    async def now(self) -> int:
        return self._clock.now_us()

    async def size(self, run_id: str | None) -> Weight:
        with self._reading():
            files = list(self._every_file()) if run_id is None else [self._file(run_id)]
            runs = [file for file in files if file.spans]
            records = head_bytes = body_bytes = 0
            for one in (one for file in runs for one in file.records(0, None)):
                records += 1
                head_bytes += len(one.head)
                body_bytes += len(one.body or b"")
            return Weight(len(runs), records, head_bytes, body_bytes, sum(file.size for file in files))

    async def backup(self, target: str) -> None:
        path = Path(target).absolute()
        check_place(str(path), is_file=False)
        with self._reading(), asking(path, "copy to"):
            self._folder.copy_to(Folder(self._files, path, read_only=False))

    def after_fork(self) -> None:
        self._mutex = threading.Lock()  # another thread of the parent may have held it, in the middle of anything
        self._known = {}
        self._folder.after_fork()
        self._leases.after_fork()

    async def close(self) -> None:
        with self._mutex:
            self._closed = True
            self._known.clear()
            self._leases.close()

    # --- transactions --------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Generator[None]:
        with self._mutex:
            if self._closed:
                raise WrongUse("This store is closed. Open another one.")
            yield

    @contextmanager
    def _reading(self) -> Generator[None]:
        with self._alone(), self._folder.locked(shared=True):
            yield

    @contextmanager
    def _writing(self) -> Generator[None]:
        self._refuse_writing()
        with self._alone(), self._folder.locked(shared=False):
            yield

    def _refuse_writing(self) -> None:
        if self.read_only:
            raise ReadOnly(f"{self.url} is open for reading. Open it for writing to change runs.")

    def _plan(self, *, sound: bool = True) -> Plan:
        def kept(run_id: str) -> Kept:
            file = self._file(run_id)
            if sound:
                file.refuse_damage()
            return Kept(file.row, file.buried)

        now_us = self._clock.now_us()
        return Plan(now_us, kept, lambda owner: self._leases.holder(owner, now_us))

    def _write(self, plan: Plan) -> None:
        if not plan.appends:
            return
        batch = self._folder.count_up()
        with asking(self._folder.runs, "write to"), Writing(self._files, self._folder.runs) as writing:
            for run_id, appends in plan.appends.items():
                file = self._file(run_id)
                line = line_of(run_id, batch, appends)
                bodies = other_bodies(appends)
                if bodies:
                    writing.replace(file, rewritten(file, line, bodies))
                else:
                    writing.append(file, line)

    # --- files ---------------------------------------------------------------------------------------------------

    def _file(self, run_id: str) -> RunFile:
        """What a run's file says now."""
        file = self._file_named(file_name(run_id))
        if file.run_id not in (None, run_id):
            raise Damaged(f"{file.path} holds run {file.run_id!r}, not {run_id!r}. Bring it back from a backup.")
        return file

    def _file_named(self, name: str) -> RunFile:
        file = self._known.pop(name, None) or RunFile(self._files, self._folder.runs / name)
        self._known[name] = file
        if len(self._known) > FILES_KNOWN_MAX:
            del self._known[next(iter(self._known))]
        file.refresh()
        return file

    def _every_file(self) -> Iterator[RunFile]:
        with asking(self._folder.runs, "read"):
            names = self._files.names(self._folder.runs)
        return (self._file_named(name) for name in names if name.endswith(SUFFIX))

    def _all(self, now_us: int) -> Iterator[tuple[Row, RunFile]]:
        for file in self._every_file():
            row = file.row
            if row is not None and file.run_id is not None:
                holder = self._leases.holder(row.owner, now_us) if row.owner is not None else None
                yield Row(file.run_id, row, holder), file

    def _until_us(self, seconds: float) -> int:
        return self._clock.now_us() + round(seconds * 1e6)
