"""How a page of runs is found, in about the same time however many runs there are.

A list is merged from *sources*, each of which gives its runs in the order of the list. A source is one of two things:

- a walk along an index that is in that order already, skipping what does not fit: quick when much fits;
- a gathering of everything that fits, put in order here: quick when little fits.

Where it is not known beforehand, the gathering is tried first, up to a limit.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, cast

from keepstep.log.lifecycle import STATUSES
from keepstep.store.base import Query
from keepstep.store.cursors import read_cursor
from keepstep.store.sqlite.driver import Connection, Cursor
from keepstep.store.sqlite.statements import listing, sql
from keepstep.store.sqlite.tags import Column, columns_of
from keepstep.store.sqlite.views import Stands

GATHERED_MAX = 500
"""About half a millisecond's worth of runs to put in order."""

BEYOND_TEXT = b""
"""Compares greater than any text: in SQLite, blobs come after texts."""
US_MAX = (1 << 63) - 1

Hit = tuple[int, str, int]
"""A place in the list (time, run id), and the run's key."""


class Wanted(NamedTuple):
    """A query, ready to be asked."""

    query: Query
    workflows: Sequence[str] | None
    """Any of these; all when None."""
    start: tuple[int, str] | None
    """The place behind which the page begins."""
    now_us: int
    stands: Stands


def wanted(query: Query, cursor: str | None, now_us: int, stands: Stands) -> Wanted:
    """A query as `rows` gets it."""
    workflows = None if query.workflow is None else (query.workflow,)
    return Wanted(query, workflows, None if cursor is None else read_cursor(cursor, query), now_us, stands)


def find(cursor: Cursor, asked: Wanted, limit: int) -> list[Hit]:
    """The first runs that fit, in order; one more than the limit when there are more."""
    tags = columns_of(asked.query.tags)
    if tags is None:
        return []
    search = _Search(cursor.connection, asked, tags)
    try:
        merged = heapq.merge(*search.sources(), key=_place, reverse=asked.query.newest_first)
        return list(islice(merged, max(limit, 0) + 1))
    finally:
        search.close()


class _Search:
    """One search, inside one transaction."""

    def __init__(self, connection: Connection, asked: Wanted, tags: dict[str, Column]) -> None:
        self._connection = connection
        self._asked = asked
        self._query = asked.query
        self._tags = tags
        self._statuses = [one for one in STATUSES if not asked.query.status or one in asked.query.status]
        self._open: list[Cursor] = []
        self._start = asked.start or ((US_MAX, "") if self._query.newest_first else (-1, ""))

    def close(self) -> None:
        """Let go of what was not read to its end."""
        for one in self._open:
            one.close(force=True)

    def sources(self) -> Iterator[Iterable[Hit]]:
        """What the list is merged from."""
        query = self._query
        if query.order == "asking":
            yield from self._asking()
        elif query.due:
            yield from self._due()
        elif self._tags:
            yield from self._tagged()
        elif query.parent is not None:
            for workflow in self._workflows_or_any():
                yield self._walk("list_by_parent", query.parent, workflow)
        elif query.starts_with and self._is_rare(query.starts_with):
            yield self._few("gather_by_id", [""], self._workflows_or_any()) or []
        elif self._asked.workflows is None and not query.status:
            yield self._walk("list_all", "") if query.order == "created" else self._all_by_change()
        else:
            for status in self._statuses:
                yield from self._in_status(status)

    # --- what can be asked for -----------------------------------------------------------------------------------

    def _in_status(self, status: str, **more: Any) -> Iterator[Iterable[Hit]]:
        """The runs in one status, of each workflow that is wanted."""
        if self._asked.workflows is None:
            yield self._walk("list_by_status", status, **more)
        else:
            for workflow in self._asked.workflows:
                yield self._walk("list_by_workflow", status, driver_workflow=workflow, **more)

    def _asking(self) -> Iterator[Iterable[Hit]]:
        """The runs that ask, along their own index: they are few, so whatever else is wanted is a look at each."""
        parts: list[dict[str, Any]] = self._due_parts() if self._query.due else [{}]
        for workflow in self._workflows_or_any():
            for part in parts:
                yield self._walk("list_asking", "", workflow, **part)

    def _due_parts(self) -> list[dict[str, Any]]:
        """What is due, as filters: each takes some of it, and all together take it once."""
        living, _ = self._owners()
        waiting = [status for status in ("paused", "sleeping") if status in self._statuses]
        return [
            {"statuses": _words({"ready"}.intersection(self._statuses))},
            {"statuses": _words(waiting), "due_us": self._asked.now_us},
            {"statuses": _words({"running"}.intersection(self._statuses)), "living": _hex_words(living)},
        ]

    def _all_by_change(self) -> Iterator[Hit]:
        """Every run in the order of its last change: an index in that order would be one more page in every claim.

        The prefix is looked at afterwards. A status in which nothing fits it would otherwise be walked to its end.
        """
        anywhere = {"from_id": "", "below_id": BEYOND_TEXT}
        walks = chain.from_iterable(self._in_status(status, **anywhere) for status in self._statuses)
        merged = heapq.merge(*walks, key=_place, reverse=self._query.newest_first)
        return (hit for hit in merged if hit[1].startswith(self._query.starts_with))

    def _is_rare(self, prefix: str) -> bool:
        """Whether few ids begin so."""
        sought = (prefix, _after_all(prefix), GATHERED_MAX + 1)
        return self._connection.execute(sql("count_ids"), sought).get <= GATHERED_MAX

    def _tagged(self) -> Iterator[Iterable[Hit]]:
        """Along the rarest of the tags, the others being looked up."""

        def count(name: str) -> int:
            sought = (name, self._tags[name], GATHERED_MAX)
            return self._connection.execute(sql("count_tagged"), sought).get

        rarest = min(self._tags, key=count) if len(self._tags) > 1 else next(iter(self._tags))
        for workflow in self._workflows_or_any():
            yield self._walk("list_by_tag", self._tags[rarest], workflow, but=rarest, driver_name=rarest)

    def _due(self) -> Iterator[Iterable[Hit]]:
        """What a worker may claim: ready, due, or left behind."""
        if "ready" in self._statuses:
            yield from self._in_status("ready")
        waiting = [status for status in ("paused", "sleeping") if status in self._statuses]
        if waiting:
            now_us = self._asked.now_us
            few = self._few("gather_due", self._waiting_workflows(), now_us=now_us)
            walks = chain.from_iterable(self._in_status(status, due_us=now_us) for status in waiting)
            yield from walks if few is None else [few]
        if "running" in self._statuses:
            living, gone = self._owners()
            few = self._few("gather_owned", gone, self._workflows_or_any())
            yield from self._in_status("running", living=_hex_words(living)) if few is None else [few]

    def _waiting_workflows(self) -> Iterator[str]:
        """The workflows that are wanted and have runs waiting for a time."""
        if self._asked.workflows is not None:
            yield from self._asked.workflows
            return
        found: str | None = ""  # a name too, and the first of all
        while found is not None:
            yield found
            found = self._connection.execute(sql("next_workflow_waiting"), (found,)).get

    def _owners(self) -> tuple[list[str], list[str]]:
        """The owners that hold runs: those that stand, and those that are gone."""
        living: list[str] = []
        gone: list[str] = []
        owner = ""
        while (found := self._connection.execute(sql("next_owner_holding"), (owner,)).fetchone()) is not None:
            owner, until_us = found
            (living if self._asked.stands(owner, until_us) else gone).append(owner)
        return living, gone

    def _workflows_or_any(self) -> Sequence[str | None]:
        return (None,) if self._asked.workflows is None else self._asked.workflows

    # --- how it is asked -----------------------------------------------------------------------------------------

    def _walk(
        self, name: str, driver: Column, workflow: str | None = None, but: str | None = None, **more: Any
    ) -> Iterator[Hit]:
        """Runs along an index, read one by one as far as they are needed."""
        also = {name: value for name, value in self._tags.items() if name != but}
        asked = {**self._filters(also), "driver": driver, "workflow": workflow, **more}
        statement = listing(name, self._query.order, newest_first=self._query.newest_first, also_tagged=len(also))
        cursor = self._connection.execute(statement, asked)
        self._open.append(cursor)
        return cast("Iterator[Hit]", cursor)

    def _few(
        self, name: str, drivers: Iterable[str], workflows: Sequence[str | None] = (None,), **more: Any
    ) -> list[Hit] | None:
        """All that fit, behind the start and in order; None when they are too many."""
        statement = listing(name, self._query.order, newest_first=self._query.newest_first, also_tagged=len(self._tags))
        filters = self._filters(self._tags)
        found: list[Hit] = []
        for driver in drivers:
            for workflow in workflows:
                most = GATHERED_MAX + 1 - len(found)
                asked = {**filters, "driver": driver, "workflow": workflow, "most": most, **more}
                found += cast("list[Hit]", self._connection.execute(statement, asked).fetchall())
                if len(found) > GATHERED_MAX:
                    return None
        newest_first = self._query.newest_first
        behind = [hit for hit in found if (hit[:2] < self._start if newest_first else hit[:2] > self._start)]
        return sorted(behind, key=_place, reverse=newest_first)

    def _filters(self, also: dict[str, Column]) -> dict[str, Any]:
        query = self._query
        asked: dict[str, Any] = {
            "workflow": None,
            "statuses": _words(self._statuses) if query.status else None,
            "parent": query.parent,
            "due_us": None,
            "living": None,
            "from_id": query.starts_with,
            "below_id": _after_all(query.starts_with),
            "us": self._start[0],
            "id": self._start[1],
        }
        for n, (name, value) in enumerate(also.items()):
            asked[f"name{n}"], asked[f"value{n}"] = name, value
        return asked


def _place(hit: Hit) -> tuple[int, str]:
    return hit[0], hit[1]


def _words(words: Iterable[str]) -> str:
    """A set of words as a statement takes it."""
    return f" {' '.join(words)} "


def _hex_words(texts: Iterable[str]) -> str:
    """The same for texts that may hold anything."""
    return _words(text.encode().hex().upper() for text in texts)


def _after_all(prefix: str) -> str | bytes:
    """The first text behind all that begin so; what is behind every text when there is none."""
    for place in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[place]) + 1
        if code <= 0x10FFFF:
            # There are no texts with surrogates; the next code after those below them is the first above.
            return prefix[:place] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)
    return BEYOND_TEXT
