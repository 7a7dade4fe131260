"""Appends: they are written if the log still ends where their writer thinks, and otherwise nothing happens."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from keepstep.errors import NotAllowed
from keepstep.log.fold import Fold
from keepstep.log.records import Noted, Tagged
from keepstep.store.base import Committed, Conflict, Decision, Outcome, Query, Refused, View
from keepstep.store.conformance.bench import Bench


class Commits(Bench):
    def test_what_was_written_is_read_back_exactly(self) -> None:
        store = self.fresh()
        pen = self.pen()
        append = pen.open(body=b"input")
        saved = pen.save(b"state", label="first")
        outcomes = self.do(store.commit([append, saved]))
        for one in self.stores(store):
            assert self.do(one.records("r")) == [*append.records, *saved.records]
            assert self.view(one).row == pen.row.freeze()
            assert self.do(one.effects("r")) == list(saved.ledger)
        assert outcomes == [Committed(append, self.clock.now_us()), Committed(saved, self.clock.now_us())]

    def test_the_row_is_a_frozen_fold(self) -> None:
        store = self.fresh()
        self.run(store)
        assert type(self.view(store).row) is Fold

    def test_an_append_behind_an_older_record_conflicts(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        late = pen.copy()
        self.write(store, pen.save())
        assert self.outcome(store, late.save(b"late")) == Conflict()
        assert self.view(store).row == pen.row.freeze()

    def test_an_append_behind_a_record_that_is_not_there_conflicts(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        pen.save()
        assert self.outcome(store, pen.save()) == Conflict()
        assert len(self.do(store.records("r"))) == 1

    def test_an_append_on_another_digest_conflicts(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        append = pen.save()._replace(after_digest=bytes(16))
        assert self.outcome(store, append) == Conflict()
        assert len(self.do(store.records("r"))) == 1

    def test_a_run_is_created_once(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        assert self.outcome(store, self.pen().open("other")) == Conflict()
        assert self.view(store).row == pen.row.freeze()

    def test_an_append_to_an_unknown_run_conflicts(self) -> None:
        store = self.fresh()
        pen = self.pen()
        pen.open()
        assert self.outcome(store, pen.save()) == Conflict()
        assert self.view(store).row is None

    def test_each_outcome_of_a_batch_stands_on_its_own(self) -> None:
        store = self.fresh()
        taken = self.run(store, "taken")
        error = NotAllowed("no", "refused")

        def refuse(view: View) -> None:
            raise error

        first, last = self.pen("first"), self.pen("last")
        batch = [first.open(), self.pen("taken").open(), Decision("refused", refuse), last.open()]
        outcomes = self.do(store.commit(batch))
        assert [type(one) for one in outcomes] == [Committed, Conflict, Refused, Committed]
        assert outcomes[2] == Refused(error)
        assert sorted(self.ids(store)) == ["first", "last", "taken"]
        assert self.view(store, "taken").row == taken.row.freeze()

    def test_entries_of_one_run_are_taken_in_order(self) -> None:
        store = self.fresh()
        pen = self.pen()
        created = pen.open()
        twin = pen.copy()
        batch = [created, pen.save(b"one"), twin.save(b"lost"), pen.save(b"two")]
        outcomes = self.do(store.commit(batch))
        assert [type(one) for one in outcomes] == [Committed, Committed, Conflict, Committed]
        assert [one.body for one in self.do(store.records("r"))] == [b"input", b"one", b"two"]
        assert self.view(store).row == pen.row.freeze()

    def test_entries_of_several_runs_may_be_mixed(self) -> None:
        store = self.fresh()
        a, b = self.pen("a"), self.pen("b")
        self.write(store, a.open(), b.open(), a.save(), b.save(), a.save())
        assert self.view(store, "a").row == a.row.freeze()
        assert self.view(store, "b").row == b.row.freeze()

    def test_an_empty_batch_is_nothing(self) -> None:
        store = self.fresh()
        assert self.do(store.commit([])) == []

    def test_a_stored_row_does_not_follow_its_writer(self) -> None:
        store = self.fresh()
        pen = self.run(store, tags={"colour": "red"})
        self.write(store, pen.save()._replace(row=pen.row))
        before = pen.row.freeze()
        pen.row.tags["colour"] = "blue"
        pen.row.jumps.append((7, 7, 7))
        pen.row.status = "failed"
        assert self.view(store).row == before
        assert self.do(store.rows(Query(), None, 9)).rows[0].fold == before

    def test_a_quiet_append_changes_the_row_all_the_same(self) -> None:
        store = self.fresh()
        pen = self.run(store, tags={"colour": "red"})
        self.clock.turn(1)
        self.write(store, pen.save(next="pay", label="first")._replace(moved=False))
        self.write(store, pen.append(Noted(namespace="progress"))._replace(moved=False))
        for one in self.stores(store):
            assert self.view(one).row == pen.row.freeze()
            assert self.do(one.rows(Query(), None, 9)).rows[0].fold == pen.row.freeze()
        self.write(store, pen.append(Tagged(tags={"colour": None})))
        assert self.view(store).row == pen.row.freeze()

    def test_what_is_committed_outlives_the_store(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        self.write(store, pen.save())
        self.do(store.close())
        other = self.beside(store)
        if other is not None:
            assert self.view(other).row == pen.row.freeze()
            assert len(self.do(other.records("r"))) == 2

    def test_two_stores_write_one_run_in_turns(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        stores = self.stores(store)
        for turn in range(6):
            self.write(stores[turn % len(stores)], pen.save())
        assert all(self.view(one).row == pen.row.freeze() for one in stores)

    def test_of_many_writers_at_one_place_one_wins(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        stores = self.stores(store)
        for _ in range(5):
            works: list[Callable[[], Coroutine[Any, Any, list[Outcome]]]] = []
            rivals = [pen.copy() for _ in range(6)]
            for place, rival in enumerate(rivals):
                append, one = rival.save(b"%d" % place), stores[place % len(stores)]
                works.append(lambda append=append, one=one: one.commit([append]))
            outcomes = [one for (one,) in self.do_at_once(works)]
            (winner,) = [place for place, one in enumerate(outcomes) if isinstance(one, Committed)]
            assert all(not isinstance(one, Committed) for place, one in enumerate(outcomes) if place != winner)
            pen = rivals[winner]
            assert self.view(store).row == pen.row.freeze()

    def test_writers_of_many_runs_lose_nothing(self) -> None:
        store = self.fresh()
        stores = self.stores(store)

        async def write(place: int) -> list[Outcome]:
            pen, one = self.pen(f"r{place}"), stores[place % len(stores)]
            outcomes = await one.commit([pen.open()])
            for _ in range(8):
                outcomes += await one.commit([pen.save()])
            return outcomes

        works = [lambda place=place: write(place) for place in range(6)]
        outcomes = [one for some in self.do_at_once(works) for one in some]
        assert all(isinstance(one, Committed) for one in outcomes)
        assert [len(self.do(store.records(f"r{place}"))) for place in range(6)] == [9] * 6
