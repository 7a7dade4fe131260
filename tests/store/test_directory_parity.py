"""The directory does under random transactions what memory does, which is the specification."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from keepstep.errors import KeepstepError, NotAllowed
from keepstep.log.records import Asked, Began, Claimed, Finished, Pruned, Released, Returned, Slept, Tagged
from keepstep.store.base import Append, Decision, Entry, Query, Store, View
from keepstep.store.conformance.bench import drive
from keepstep.store.conformance.pen import Pen, pen_on
from keepstep.store.conformance.turned_clock import TurnedClock
from keepstep.store.directory import DirectoryStore
from keepstep.store.memory import MemoryStore

IDS = ("a", "A", "b/c")
OWNERS = ("ann", "bob")
KINDS = ("open", "save", "label", "claim", "release", "sleep", "ask", "began", "tag", "prune", "renew", "finish")

MARKS = st.tuples(st.sampled_from(IDS), st.sampled_from(KINDS), st.integers(0, 3), st.booleans())
STEPS = st.one_of(
    st.tuples(st.just("commit"), st.lists(MARKS, min_size=1, max_size=6)),
    st.tuples(st.just("commit"), st.lists(MARKS, min_size=1, max_size=6)),
    st.tuples(st.just("late"), st.sampled_from(IDS)),
    st.tuples(st.just("delete"), st.sampled_from(IDS)),
    st.tuples(st.just("claim"), st.integers(1, 3)),
    st.tuples(st.sampled_from(("enlist", "renew", "retire")), st.sampled_from(OWNERS)),
    st.tuples(st.just("turn"), st.integers(1, 40)),
    st.tuples(st.just("reopen"), st.just(None)),
)


def add(pen: Pen, kind: str, number: int) -> Append:
    body = bytes(number * 100)
    match kind:
        case "open":
            return pen.open(body=body)
        case "label":
            return pen.save(body, label=f"label {number}")
        case "claim":
            return pen.claim(OWNERS[number % 2])
        case "release":
            return pen.append(Released(reason="waits" if number else "left"))
        case "sleep":
            until_us = pen.clock.now_us() + number * 10_000_000 if number else None
            return pen.append(Slept(key=b"s", until_us=until_us), Released(reason="waits"))
        case "ask":
            return pen.append(Asked(gate="g", key=b"g", until_us=pen.clock.now_us() + number))
        case "began":
            return pen.append(
                Began(key=bytes((number,)), tool="pay"), Returned(key=bytes((number,)), began=pen.row.seq + 1)
            )
        case "tag":
            return pen.append(Tagged(tags={"n": number or None, "hex:00": "hex:00"}))
        case "prune":
            return pen.append(Pruned(), dropped=[(number, number + 1)])
        case "renew":
            return pen.append(Pruned(), renewed=[(number, b"anew")])
        case "finish":
            return pen.append(Finished())
        case _:
            return pen.save(body)


class Pair:
    """The same done to both; whatever they answer has to be the same."""

    def __init__(self, folder: str) -> None:
        self.clock = TurnedClock()
        self.path = f"{folder}/store"
        self.memory = MemoryStore(self.clock)
        self.directory = DirectoryStore(self.path, self.clock)
        drive(self.directory.open())
        self.stale: dict[str, Pen] = {}

    def both(self, work: Callable[[Store], Any]) -> Any:
        one, other = outcome_of(work, self.memory), outcome_of(work, self.directory)
        assert one == other
        return one

    def step(self, what: str, how: Any) -> None:
        match what:
            case "commit":
                batch = self._batch(how)
                self.both(lambda store: drive(store.commit(batch)))
            case "late":
                pen = self.stale.get(how) or Pen(how, self.clock)
                append = add(pen, "tag" if pen.row.seq else "open", 1)
                self.both(lambda store: drive(store.commit([append])))
            case "delete":
                self.both(lambda store: drive(store.delete(how, _refuse_held)))
            case "claim":
                self._claim(how)
            case "turn":
                self.clock.turn(how)
            case "reopen":
                self.directory = DirectoryStore(self.path, self.clock)
            case _:
                self._owner(what, how)

    def _owner(self, what: str, owner: str) -> None:
        if what == "renew":
            self.both(lambda store: drive(store.renew(owner, 30)))
        elif what == "retire":
            self.both(lambda store: drive(store.retire(owner)))
        else:
            # A lease without a lock: memory has none either.
            drive(self.memory.enlist(owner, 30))
            self.directory._leases._write(owner, self.clock.now_us() + 30_000_000)

    def _claim(self, limit: int) -> None:
        made: dict[str, Append] = {}

        def decide(view: View) -> Append | None:
            if view.run_id not in made:
                pen = pen_on(view, self.clock)
                made[view.run_id] = pen.append(Claimed(owner="ann", epoch=pen.row.epoch + 1))
            return made[view.run_id]

        self.both(lambda store: drive(store.claim(None, limit, decide)))

    def _batch(self, marks: list[tuple[str, str, int, bool]]) -> list[Entry]:
        """Entries made once, so that both get the same bytes."""
        pens: dict[str, Pen] = {}
        batch: list[Entry] = []
        for run_id, kind, number, decided in marks:
            if run_id not in pens:
                view = drive(self.memory.view(run_id))
                pens[run_id] = pen_on(view, self.clock)
                self.stale.setdefault(run_id, pens[run_id].copy())
            before = pens[run_id].copy()
            try:
                append = add(pens[run_id], kind, number)
            except NotAllowed as refusal:
                pens[run_id] = before
                batch.append(Decision(run_id, _refuse_with(refusal)))
            else:
                batch.append(Decision(run_id, _answer(append)) if decided else append)
        return batch

    def compare(self) -> None:
        for run_id in IDS:
            self.both(lambda store, run_id=run_id: drive(store.view(run_id)))
            self.both(lambda store, run_id=run_id: drive(store.records(run_id)))
            self.both(lambda store, run_id=run_id: drive(store.records(run_id, after=1, newest_first=True, limit=2)))
            self.both(lambda store, run_id=run_id: drive(store.pick(run_id, [3, 1, 5])))
            self.both(lambda store, run_id=run_id: drive(store.effects(run_id)))
            self.both(lambda store, run_id=run_id: drive(store.size(run_id))[:4])
        for query in (Query(), Query(order="changed", newest_first=False), Query(due=True), Query(tags={"n": 1})):
            self.both(lambda store, query=query: drive(store.rows(query, None, 2)))
        self.both(lambda store: drive(store.size(None))[:4])


def outcome_of(work: Callable[[Store], Any], store: Store) -> Any:
    try:
        return work(store)
    except KeepstepError as error:
        return repr(error)


def _refuse_with(error: NotAllowed) -> Callable[[View], Append | None]:
    def refuse(view: View) -> None:
        raise error

    return refuse


def _answer(append: Append) -> Callable[[View], Append | None]:
    return lambda view: append


def _refuse_held(view: View) -> None:
    if view.holder is not None and view.holder.stands:
        raise NotAllowed("it is held", view.run_id)


@settings(max_examples=80, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_the_directory_does_what_memory_does(steps: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pair = Pair(folder)
        for what, how in steps:
            pair.step(what, how)
        pair.compare()
        pair.directory = DirectoryStore(pair.path, pair.clock)
        pair.compare()
