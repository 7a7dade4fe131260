"""Decisions: what they are shown, and what becomes of what they say."""

from __future__ import annotations

from keepstep.errors import NotAllowed
from keepstep.store.base import Append, Busy, Committed, Decision, Outcome, Refused, Store, View
from keepstep.store.conformance.bench import Bench
from keepstep.store.conformance.pen import claiming, opening, pen_on


class Decisions(Bench):
    def test_a_decision_creates_a_run(self) -> None:
        store = self.fresh()
        outcome = self.outcome(store, Decision("r", opening(self.clock)))
        assert isinstance(outcome, Committed)
        assert outcome.append is not None
        assert self.do(store.records("r")) == list(outcome.append.records)
        assert outcome.now_us == self.clock.now_us()

    def test_a_decision_is_shown_that_there_is_no_run(self) -> None:
        store = self.fresh()
        assert self.shown(store) == View("r", None, None, (0, 0), self.clock.now_us())

    def test_a_decision_is_shown_what_view_shows(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        self.held_run(store, "ann")
        shown = self.shown(store)
        assert shown == self.view(store)
        assert shown.holder is not None
        assert (shown.holder.owner, shown.holder.stands) == ("ann", True)

    def test_a_refusal_comes_back_and_nothing_is_written(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        error = NotAllowed("not now", "r")

        def refuse(view: View) -> None:
            raise error

        outcome = self.outcome(store, Decision("r", refuse))
        assert isinstance(outcome, Refused)
        assert outcome.error is error
        assert self.view(store).row == pen.row.freeze()

    def test_a_decision_may_find_nothing_to_write(self) -> None:
        store = self.fresh()

        def nothing(view: View) -> None:
            """Nothing to write."""

        assert self.outcome(store, Decision("r", nothing)) == Committed(None, self.clock.now_us())
        assert self.view(store).row is None
        assert self.ids(store) == []

    def test_a_decision_sees_what_came_before_it_in_the_batch(self) -> None:
        store = self.fresh()
        seen: list[int] = []

        def save(view: View) -> Append:
            seen.append(0 if view.row is None else view.row.seq)
            return pen_on(view, self.clock).save()

        pen = self.pen()
        self.write(store, pen.open(), Decision("r", save), Decision("r", save))
        assert seen == [1, 2]
        assert len(self.do(store.records("r"))) == 3

    def test_a_refusal_leaves_the_rest_of_its_run_alone(self) -> None:
        store = self.fresh()

        def refuse(view: View) -> None:
            raise NotAllowed("no", "r")

        pen = self.pen()
        outcomes = self.do(store.commit([pen.open(), Decision("r", refuse), pen.save()]))
        assert [type(one) for one in outcomes] == [Committed, Refused, Committed]
        assert self.view(store).row == pen.row.freeze()

    def test_a_decision_that_breaks_breaks_its_batch_and_nothing_of_it_is_written(self) -> None:
        store = self.fresh()

        def broken(view: View) -> None:
            raise ZeroDivisionError

        pen = self.pen()
        batch = [pen.open(), Decision("other", broken)]
        try:
            self.do(store.commit(batch))
        except ZeroDivisionError:
            pass
        else:
            raise AssertionError("an error that is not keepstep's must come out")
        assert self.view(store).row is None
        self.write(store, *batch[:1])

    def test_the_time_of_a_decision_is_the_stores(self) -> None:
        store = self.fresh()
        self.clock.turn(12.5)
        assert self.shown(store).now_us == self.clock.now_us() == self.do(store.now())

    def test_of_many_who_decide_to_claim_each_sees_the_one_before(self) -> None:
        store = self.fresh()
        self.run(store)
        stores = self.stores(store)

        async def claim(one: Store, place: int) -> Outcome:
            (outcome,) = await one.commit([Decision("r", claiming(self.clock, f"o{place}"))])
            while isinstance(outcome, Busy):  # it goes alone in the next round
                (outcome,) = await one.commit([Decision("r", claiming(self.clock, f"o{place}"))])
            return outcome

        works = [lambda one=one, place=place: claim(one, place) for place, one in enumerate((stores * 6)[:6])]
        assert all(isinstance(outcome, Committed) for outcome in self.do_at_once(works))
        row = self.view(store).row
        assert row is not None
        assert row.epoch == 6
