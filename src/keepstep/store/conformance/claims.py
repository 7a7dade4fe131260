"""Claiming: what is due is found and claimed in one transaction, by one only."""

from __future__ import annotations

from keepstep.errors import NotAllowed
from keepstep.log.fold import Fold
from keepstep.log.records import Asked, Finished, Released, Slept
from keepstep.store.base import Append, Committed, Decision, Query, Store, View
from keepstep.store.conformance.bench import Bench
from keepstep.store.conformance.pen import Pen, claiming, opening


class Claims(Bench):
    def _claimed(self, store: Store, limit: int = 100, workflows: list[str] | None = None) -> list[str]:
        claimed = self.do(store.claim(workflows, limit, claiming(self.clock, "worker")))
        return [one.append.run_id for one in claimed if one.append is not None]

    def _sleep(self, store: Store, run_id: str, until_us: int | None) -> None:
        pen = self.held_run(store, "ann", run_id)
        self.write(store, pen.append(Slept(key=b"s" * 16, until_us=until_us), Released(reason="waits")))

    def _ask(self, store: Store, run_id: str, until_us: int | None) -> None:
        pen = self.run(store, run_id)
        self.write(store, pen.append(Asked(gate="g", key=b"g" * 16, until_us=until_us)))

    def test_ready_runs_are_claimed(self) -> None:
        store = self.fresh()
        self.do(store.enlist("worker", 30))
        self.run(store, "a")
        (claimed,) = self.do(store.claim(None, 9, claiming(self.clock, "worker")))
        assert isinstance(claimed, Committed)
        assert claimed.append is not None
        assert claimed.now_us == self.clock.now_us()
        for one in self.stores(store):
            view = self.view(one, "a")
            assert isinstance(view.row, Fold)
            assert (view.row.status, view.row.owner, view.row.epoch) == ("running", "worker", 1)
            assert self.do(one.records("a"))[1:] == list(claimed.append.records)

    def test_there_may_be_none(self) -> None:
        store = self.fresh()
        assert self._claimed(store) == []

    def test_the_oldest_change_comes_first(self) -> None:
        store = self.fresh()
        pens: dict[str, Pen] = {}
        for run_id in ("c", "a", "b"):
            pens[run_id] = self.run(store, run_id)
            self.clock.turn(1)
        self.do(store.enlist("worker", 30))
        self.write(store, pens["c"].claim("ann"), pens["c"].append(Released()))
        assert self._claimed(store) == ["a", "b", "c"]

    def test_a_limit_is_kept(self) -> None:
        store = self.fresh()
        self.do(store.enlist("worker", 30))
        for number in range(5):
            self.run(store, f"r{number}")
            self.clock.turn(1)
        assert self._claimed(store, limit=2) == ["r0", "r1"]
        assert self._claimed(store, limit=1) == ["r2"]
        assert self._claimed(store, limit=9) == ["r3", "r4"]
        assert self._claimed(store, limit=9) == []

    def test_only_the_workflows_that_are_named_are_claimed(self) -> None:
        store = self.fresh()
        self.do(store.enlist("worker", 30))
        for run_id, workflow in (("a", "x"), ("b", "y"), ("c", "X"), ("d", "z")):
            self.run(store, run_id, workflow=workflow)
            self.clock.turn(1)
        assert self._claimed(store, workflows=[]) == []
        assert self._claimed(store, workflows=["x", "z", "none"]) == ["a", "d"]
        assert self._claimed(store, workflows=None) == ["b", "c"]

    def test_a_run_whose_decision_refuses_is_passed_over(self) -> None:
        store = self.fresh()
        for run_id in ("no", "nothing", "yes", "also"):
            self.run(store, run_id)
            self.clock.turn(1)

        def choosy(view: View) -> Append | None:
            if view.run_id == "no":
                raise NotAllowed("not this one", view.run_id)
            return None if view.run_id == "nothing" else claiming(self.clock, "worker")(view)

        claimed = self.do(store.claim(None, 2, choosy))
        assert [one.append.run_id for one in claimed if one.append is not None] == ["yes", "also"]
        assert len(self.do(store.records("no"))) == len(self.do(store.records("nothing"))) == 1

    def test_what_is_not_due_is_left_alone(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        self.held_run(store, "ann", "held")
        self._ask(store, "asked", None)
        self._ask(store, "asked until later", self.clock.now_us() + 1_000_000)
        self._sleep(store, "asleep", self.clock.now_us() + 1_000_000)
        self._sleep(store, "waits for mail", None)
        pen = self.held_run(store, "ann", "finished")
        self.write(store, pen.append(Finished()))
        for one in self.stores(store):
            assert self.ids(one, Query(due=True)) == []
            assert self._claimed(one) == []

    def test_what_was_waiting_is_due_in_time(self) -> None:
        store = self.fresh()
        self._ask(store, "asked", self.clock.now_us() + 2_000_000)
        self._sleep(store, "asleep", self.clock.now_us() + 1_000_000)
        self.clock.turn(1.5)
        assert self.ids(store, Query(due=True)) == ["asleep"]
        self.clock.turn(1)
        assert sorted(self.ids(store, Query(due=True))) == ["asked", "asleep"]
        assert sorted(self._claimed(store)) == ["asked", "asleep"]

    def test_a_run_whose_holder_lapsed_is_claimed(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        self.do(store.enlist("worker", 300))
        self.held_run(store, "ann")
        self.clock.turn(31)
        assert self.ids(store, Query(due=True)) == ["r"]
        seen: list[View] = []

        def look(view: View) -> Append:
            seen.append(view)
            return claiming(self.clock, "worker")(view)

        assert len(self.do(store.claim(None, 1, look))) == 1
        assert seen[0].holder is not None
        assert (seen[0].holder.owner, seen[0].holder.stands) == ("ann", False)
        row = self.view(store).row
        assert row is not None
        assert (row.owner, row.epoch, row.deaths) == ("worker", 2, 1)
        assert self.ids(store, Query(due=True)) == []

    def test_a_run_whose_holder_retired_is_claimed(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        self.held_run(store, "ann")
        self.do(store.retire("ann"))
        assert self.ids(store, Query(due=True)) == ["r"]
        assert self._claimed(store) == ["r"]

    def test_a_run_that_lives_again_is_claimed(self) -> None:
        store = self.fresh()
        self.run(store)
        self.do(store.delete("r", lambda view: None))
        assert self._claimed(store) == []
        self.write(store, Decision("r", opening(self.clock)))
        assert self._claimed(store) == ["r"]

    def test_two_claimers_never_get_the_same_run(self) -> None:
        store = self.fresh()
        self.do(store.enlist("worker", 300))
        ids = [f"r{number:02}" for number in range(24)]
        self.write(store, *(self.pen(one).open() for one in ids))
        stores = self.stores(store)

        async def work(one: Store) -> list[str]:
            got: list[str] = []
            empty = 0
            while empty < 3:  # a store may pass over what others have locked just now
                claimed = await one.claim(None, 3, claiming(self.clock, "worker"))
                got += [run.append.run_id for run in claimed if run.append is not None]
                empty = 0 if claimed else empty + 1
            return got

        works = [lambda one=one: work(one) for one in (stores * 4)[:4]]
        assert sorted(run_id for got in self.do_at_once(works) for run_id in got) == ids
        rows = self.do(store.rows(Query(), None, 100)).rows
        assert {row.fold.epoch for row in rows} == {1}
