"""Owners: who holds a run, and whether they still stand."""

from __future__ import annotations

from keepstep.log.records import Released
from keepstep.store.base import Holder
from keepstep.store.conformance.bench import Bench, in_threads


class Owners(Bench):
    def test_a_run_that_nobody_holds_has_no_holder(self) -> None:
        store = self.fresh()
        self.run(store)
        assert self.view(store).holder is None

    def test_a_holder_stands_while_its_lease_runs(self) -> None:
        store = self.fresh()
        until_us = self.clock.now_us() + 30_000_000
        self.do(store.enlist("ann", 30))
        self.held_run(store, "ann")
        for one in self.stores(store):
            assert self.view(one).holder == Holder("ann", until_us, stands=True)
        self.clock.turn(29)
        for one in self.stores(store):
            assert self.view(one).holder == Holder("ann", until_us, stands=True)

    def test_a_holder_whose_lease_has_passed_does_not_stand(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        self.held_run(store, "ann")
        self.clock.turn(31)
        for one in self.stores(store):
            holder = self.view(one).holder
            assert holder is not None
            assert (holder.owner, holder.stands) == ("ann", False)

    def test_a_holder_that_retired_does_not_stand(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        self.held_run(store, "ann")
        self.do(store.retire("ann"))
        for one in self.stores(store):
            holder = self.view(one).holder
            assert holder is not None
            assert (holder.owner, holder.stands) == ("ann", False)

    def test_an_owner_that_nobody_knows_does_not_stand(self) -> None:
        store = self.fresh()
        self.held_run(store, "stranger")
        holder = self.view(store).holder
        assert holder is not None
        assert (holder.owner, holder.stands) == ("stranger", False)

    def test_a_released_run_has_no_holder(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        pen = self.held_run(store, "ann")
        self.write(store, pen.append(Released()))
        assert self.view(store).holder is None

    def test_renewing_prolongs_the_lease(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        self.held_run(store, "ann")
        self.clock.turn(20)
        renewal = self.do(store.renew("ann", 30))
        assert (renewal.stands, renewal.now_us) == (True, self.clock.now_us())
        self.clock.turn(20)
        holder = self.view(store).holder
        assert holder is not None
        assert holder.stands

    def test_a_lapsed_lease_is_prolonged(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        self.held_run(store, "ann")
        self.clock.turn(100)
        assert self.do(store.renew("ann", 30)).stands
        for one in self.stores(store):
            assert self.view(one).holder == Holder("ann", self.clock.now_us() + 30_000_000, stands=True)

    def test_an_owner_that_is_gone_cannot_renew(self) -> None:
        store = self.fresh()
        assert not self.do(store.renew("never", 30)).stands
        self.do(store.enlist("ann", 30))
        self.held_run(store, "ann")
        self.do(store.retire("ann"))
        assert not self.do(store.renew("ann", 30)).stands
        holder = self.view(store).holder
        assert holder is not None
        assert not holder.stands

    def test_renewing_tells_which_runs_are_held(self) -> None:
        store = self.fresh()
        for owner in ("ann", "bob"):
            self.do(store.enlist(owner, 30))
        first = self.held_run(store, "ann", "first")
        second = self.held_run(store, "ann", "second")
        self.held_run(store, "bob", "third")
        self.run(store, "free")
        self.write(store, second.save())
        assert self.do(store.renew("ann", 30)).held == {"first": (2, 1), "second": (3, 1)}
        self.write(store, first.append(Released()))
        self.write(store, second.claim("bob"))
        assert self.do(store.renew("ann", 30)).held == {}
        assert self.do(store.renew("bob", 30)).held == {"second": (4, 2), "third": (2, 1)}

    def test_an_owner_without_runs_holds_none(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        assert self.do(store.renew("ann", 30)).held == {}

    def test_retiring_twice_is_fine(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        self.do(store.retire("ann"))
        self.do(store.retire("ann"))
        self.do(store.retire("never"))

    def test_an_owner_may_have_a_strange_name(self) -> None:
        store = self.fresh()
        for owner in ("../ann", "ann/bob", "ANN", "ann", "ann%", "añn"):
            self.do(store.enlist(owner, 30))
            self.held_run(store, owner, f"run of {owner}")
        self.do(store.retire("ann"))
        standing = [self.do(store.renew(owner, 30)).stands for owner in ("../ann", "ann/bob", "ANN", "ann", "ann%")]
        assert standing == [True, True, True, False, True]

    def test_renewing_works_from_a_thread_of_its_own(self) -> None:
        store = self.fresh()
        if not store.blocking:
            return
        self.do(store.enlist("ann", 30))
        pen = self.held_run(store, "ann")

        def renew() -> list[bool]:
            return [self.do(store.renew("ann", 30)).stands for _ in range(10)]

        def save() -> list[bool]:
            return [bool(self.write(store, pen.save())) for _ in range(10)]

        assert all(all(one) for one in in_threads([renew, save]))
