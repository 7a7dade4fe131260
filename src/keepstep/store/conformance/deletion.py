"""Deletion: everything goes, and a tombstone stays, so that a late writer is told and a new life can begin."""

from __future__ import annotations

from keepstep.errors import NotAllowed
from keepstep.log.grow import Draft
from keepstep.log.records import Began, Noted
from keepstep.store.base import Committed, Conflict, Decision, Gone, Query, Store, View
from keepstep.store.conformance.bench import Bench
from keepstep.store.conformance.pen import Pen, claiming, opening


def _allow(view: View) -> None:
    """Nothing stands against it."""


class Deletion(Bench):
    def _deleted(self, store: Store) -> Pen:
        """A run that was claimed, used and deleted; its writer does not know."""
        pen = self.held_run(store, "ann")
        self.write(store, pen.append(Draft(Began(key=b"k" * 16, tool="pay"), b"arguments")))
        assert self.do(store.delete("r", _allow)) is True
        return pen

    def test_a_deleted_run_is_nowhere(self) -> None:
        store = self.fresh()
        self._deleted(store)
        for one in self.stores(store):
            assert self.view(one).row is None
            assert self.view(one).holder is None
            assert self.do(one.records("r")) == []
            assert self.do(one.pick("r", [1, 2])) == []
            assert self.do(one.effects("r")) == []
            assert self.ids(one) == []
            assert self.ids(one, Query(due=True)) == []
            assert self.do(one.size("r"))[:4] == (0, 0, 0, 0)
            assert self.do(one.size(None))[:4] == (0, 0, 0, 0)

    def test_only_the_run_that_is_named_goes(self) -> None:
        store = self.fresh()
        ids = ["r", "r2", "R", "r/", "r%"]
        for one in ids:
            self.run(store, one)
        self.do(store.delete("r", _allow))
        assert sorted(self.ids(store)) == sorted(ids[1:])
        assert all(len(self.do(store.records(one))) == 1 for one in ids[1:])

    def test_there_may_be_none(self) -> None:
        store = self.fresh()
        assert self.do(store.delete("r", _allow)) is False
        self._deleted(store)
        assert self.do(store.delete("r", _allow)) is False

    def test_whoever_decides_sees_the_run_and_may_refuse(self) -> None:
        store = self.fresh()
        pen = self.held_run(store, "ann")
        seen: list[View] = []
        error = NotAllowed("it is held", "r")

        def refuse(view: View) -> None:
            seen.append(view)
            raise error

        try:
            self.do(store.delete("r", refuse))
        except NotAllowed as raised:
            caught: NotAllowed | None = raised
        else:
            caught = None
        assert caught is error
        assert seen == [self.view(store)]
        assert self.view(store).row == pen.row.freeze()
        assert len(self.do(store.records("r"))) == 2

    def test_a_late_write_is_told_that_the_run_is_gone(self) -> None:
        store = self.fresh()
        pen = self._deleted(store)
        late = pen.save()
        for one in self.stores(store):
            assert self.outcome(one, late) == Gone()
            assert self.view(one).row is None

    def test_the_tombstone_tells_incarnation_and_epoch(self) -> None:
        store = self.fresh()
        assert self.view(store).buried == (0, 0)
        self._deleted(store)
        for one in self.stores(store):
            assert self.view(one).buried == (1, 1)
            assert self.shown(one).buried == (1, 1)

    def test_an_id_may_live_again(self) -> None:
        store = self.fresh()
        self._deleted(store)
        (append,) = self.write(store, Decision("r", opening(self.clock, "again")))
        assert append is not None
        for one in self.stores(store):
            row = self.view(one).row
            assert row is not None
            assert (row.workflow, row.incarnation, row.epoch, row.seq) == ("again", 2, 1, 1)
            assert self.do(one.records("r")) == list(append.records)
            assert self.do(one.effects("r")) == []
            assert self.ids(one) == ["r"]
        self.write(store, Decision("r", claiming(self.clock, "bob")))
        row = self.view(store).row
        assert row is not None
        assert row.epoch == 2

    def test_a_writer_of_the_last_life_cannot_write_to_the_next(self) -> None:
        store = self.fresh()
        pen = self._deleted(store)
        (append,) = self.write(store, Decision("r", opening(self.clock)))
        assert append is not None
        assert isinstance(self.outcome(store, pen.save()), Gone | Conflict)
        assert self.do(store.records("r")) == list(append.records)

    def test_a_creation_that_does_not_know_of_the_tombstone_is_not_written(self) -> None:
        store = self.fresh()
        self._deleted(store)
        assert isinstance(self.outcome(store, self.pen().open()), Gone | Conflict)
        assert self.view(store).row is None

    def test_a_life_after_a_life_is_buried_too(self) -> None:
        store = self.fresh()
        self._deleted(store)
        self.write(store, Decision("r", opening(self.clock)), Decision("r", claiming(self.clock, "bob")))
        assert self.do(store.delete("r", _allow)) is True
        assert self.view(store).buried == (2, 2)
        outcome = self.outcome(store, Decision("r", opening(self.clock)))
        assert isinstance(outcome, Committed)
        assert outcome.append is not None
        assert outcome.append.row.incarnation == 3

    def test_a_deleted_run_takes_its_ledger_and_bodies_along(self) -> None:
        store = self.fresh()
        self._deleted(store)
        pen = self.pen()
        self.write(store, pen.open(buried=(1, 1)))
        self.write(store, pen.append(Noted(namespace="n")))
        assert [one.body for one in self.do(store.records("r"))] == [b"input", None]
        assert self.do(store.effects("r", [b"k" * 16])) == []
