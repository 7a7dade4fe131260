"""Lists of runs: filtered, ordered, and in pages."""

from __future__ import annotations

from keepstep.errors import BadInput
from keepstep.log.grow import Draft
from keepstep.log.records import (
    Answered,
    Asked,
    Expired,
    Finished,
    Noted,
    Opened,
    Released,
    Slept,
    Tagged,
    TagValue,
)  # fmt: skip
from keepstep.store.base import Holder, Order, Query, Store
from keepstep.store.conformance.bench import Bench
from keepstep.store.conformance.pen import Pen

ASKING = Query(order="asking", newest_first=False)
KEY = bytes(16)


class Lists(Bench):
    def _runs(self, store: Store, *ids: str, apart: float = 1) -> None:
        for one in ids:
            self.run(store, one)
            self.clock.turn(apart)

    def _pages(self, store: Store, query: Query, limit: int) -> list[str]:
        """All pages of a list, one after the other."""
        ids: list[str] = []
        cursor: str | None = None
        for _ in range(1000):
            page = self.do(store.rows(query, cursor, limit))
            assert len(page.rows) <= limit
            ids += [row.run_id for row in page.rows]
            cursor = page.next
            if cursor is None:
                return ids
            assert page.rows
        raise AssertionError("the pages do not come to an end")

    def test_a_new_store_lists_nothing(self) -> None:
        store = self.fresh()
        page = self.do(store.rows(Query(), None, 10))
        assert (list(page.rows), page.next) == ([], None)

    def test_a_list_has_rows_and_holders(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        pen = self.held_run(store, "ann", "held")
        lease = Holder("ann", self.clock.now_us() + 30_000_000, stands=True)
        self.clock.turn(1)
        free = self.run(store, "free")
        for one in self.stores(store):
            rows = self.do(one.rows(Query(), None, 10)).rows
            assert list(rows) == [("free", free.row.freeze(), None), ("held", pen.row.freeze(), lease)]

    # --- order ---------------------------------------------------------------------------------------------------

    def test_runs_are_listed_by_when_they_were_created(self) -> None:
        store = self.fresh()
        self._runs(store, "b", "c", "a")
        assert self.ids(store) == ["a", "c", "b"]
        assert self.ids(store, Query(newest_first=False)) == ["b", "c", "a"]

    def test_runs_are_listed_by_when_their_status_changed(self) -> None:
        store = self.fresh()
        first = self.run(store, "first")
        self.clock.turn(1)
        second = self.run(store, "second")
        self.clock.turn(1)
        self.write(store, first.claim("ann"))
        self.clock.turn(1)
        self.write(store, second.save())  # which changes no status
        assert self.ids(store, Query(order="changed")) == ["first", "second"]
        assert self.ids(store, Query(order="changed", newest_first=False)) == ["second", "first"]
        assert self.ids(store, Query(order="created")) == ["second", "first"]

    # --- filters -------------------------------------------------------------------------------------------------

    def test_a_list_may_be_of_one_workflow(self) -> None:
        store = self.fresh()
        for run_id, workflow in (("a", "x"), ("b", "X"), ("c", "x ")):
            self.run(store, run_id, workflow=workflow)
        assert self.ids(store, Query(workflow="x")) == ["a"]
        assert self.ids(store, Query(workflow="none")) == []

    def test_a_list_may_be_of_some_statuses(self) -> None:
        store = self.fresh()
        self.run(store, "ready")
        self.held_run(store, "ann", "running")
        self.write(store, self.held_run(store, "ann", "finished").append(Finished()))
        assert self.ids(store, Query(status=("ready",))) == ["ready"]
        assert sorted(self.ids(store, Query(status=("finished", "running")))) == ["finished", "running"]
        assert self.ids(store, Query(status=("failed",))) == []

    def test_a_list_may_be_of_forks(self) -> None:
        store = self.fresh()
        self.run(store, "parent")
        self.run(store, "child", parent="parent")
        self.run(store, "other", parent="Parent")
        assert self.ids(store, Query(parent="parent")) == ["child"]
        assert self.ids(store, Query(parent="child")) == []

    def test_a_list_may_be_of_tagged_runs(self) -> None:
        store = self.fresh()
        self.run(store, "red", tags={"colour": "red", "size": 1})
        self.run(store, "blue", tags={"colour": "blue", "size": 1, "urgent": True})
        self.run(store, "bare")
        cases: list[tuple[dict[str, TagValue], list[str]]] = [
            ({"colour": "red"}, ["red"]),
            ({"size": 1}, ["blue", "red"]),
            ({"size": 1, "colour": "blue"}, ["blue"]),
            ({"urgent": True}, ["blue"]),
            ({"urgent": False}, []),
            ({"colour": "RED"}, []),
            ({"color": "red"}, []),
            ({"size": 2}, []),
            ({"size": 1, "shape": "round"}, []),
        ]
        for tags, ids in cases:
            assert sorted(self.ids(store, Query(tags=tags))) == ids, tags

    def test_a_tag_is_found_by_its_value_and_its_type(self) -> None:
        store = self.fresh()
        values: dict[str, TagValue] = {
            "text": "1", "number": 1, "yes": True, "half": 0.5, "half text": "0.5", "empty": "", "no": False, "zero": 0,
            "large": 2**62, "odd": "%_*[']\"\\\n\0é",
        }  # fmt: skip
        for name, value in values.items():
            self.run(store, name, tags={"t": value, "u": "same"})
        for name, value in values.items():
            assert self.ids(store, Query(tags={"t": value, "u": "same"})) == [name], value

    def test_tags_are_found_by_what_they_are_now(self) -> None:
        store = self.fresh()
        pen = self.run(store, tags={"colour": "red", "size": 1})
        self.write(store, pen.append(Tagged(tags={"colour": "blue", "size": None})))
        for one in self.stores(store):
            assert self.ids(one, Query(tags={"colour": "red"})) == []
            assert self.ids(one, Query(tags={"size": 1})) == []
            assert self.ids(one, Query(tags={"colour": "blue"})) == ["r"]

    def test_a_list_may_be_of_ids_that_begin_so(self) -> None:
        store = self.fresh()
        ids = [
            "a", "ab", "aB", "A", "AB", "b", "a%", "a%b", "a_", "a_b", "axb", "a*b", "a?b", "a[b", "a[bc]d", "a]",
            "a\\b", "a'b", 'a"b', "a b", "aé", "ae\u0301", "a\U0001f600", "a/b", "a\0b", "\U0010ffff", "\U0010ffffx",
        ]  # fmt: skip
        self.write(store, *(self.pen(one).open() for one in ids))
        prefixes = {one[:end] for one in ids for end in range(len(one) + 1)} | {"%", "_", "*", "[ab]", "zz", "a__"}
        for prefix in sorted(prefixes):
            expected = sorted(one for one in ids if one.startswith(prefix))
            assert sorted(self.ids(store, Query(starts_with=prefix))) == expected, prefix

    def test_filters_are_taken_together(self) -> None:
        store = self.fresh()
        self.run(store, "job 1", workflow="x", tags={"team": "a"})
        self.run(store, "job 2", workflow="x", tags={"team": "b"})
        self.run(store, "job 3", workflow="y", tags={"team": "a"})
        self.run(store, "task", workflow="x", tags={"team": "a"})
        query = Query(workflow="x", status=("ready",), tags={"team": "a"}, starts_with="job", due=True)
        assert self.ids(store, query) == ["job 1"]
        assert self._pages(store, query, 1) == ["job 1"]

    def test_a_run_leaves_a_list_when_it_changes(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        assert self.ids(store, Query(status=("ready",))) == ["r"]
        self.write(store, pen.claim("ann"))
        assert self.ids(store, Query(status=("ready",))) == []
        assert self.ids(store, Query(status=("running",))) == ["r"]
        self.write(store, pen.append(Released()))
        assert self.ids(store, Query(status=("ready",))) == ["r"]

    # --- runs that ask -------------------------------------------------------------------------------------------

    def _asking(self, store: Store, run_id: str, *, until_us: int | None = None, workflow: str = "w") -> Pen:
        """A run that asks while it is free."""
        pen = self.run(store, run_id, workflow=workflow)
        self.write(store, pen.append(_question(run_id, until_us)))
        return pen

    def test_only_runs_that_ask_are_listed_by_since_when(self) -> None:
        store = self.fresh()
        pens = {one: self.run(store, one) for one in ("never", "late", "early", "middle")}
        for one in ("early", "middle", "late"):
            self.clock.turn(1)
            self.write(store, pens[one].append(_question(one)))
        self.clock.turn(1)
        self.write(store, pens["early"].claim("ann"))  # which changes it, and not since when it asks
        for one in self.stores(store):
            assert self.ids(one, ASKING) == ["early", "middle", "late"]
            assert self.ids(one, Query(order="asking")) == ["late", "middle", "early"]

    def test_runs_ask_whatever_their_status(self) -> None:
        store = self.fresh()
        self.write(store, self.pen("created asking").append(Draft(Opened(workflow="w")), Draft(_question("q"))))
        self._asking(store, "paused")
        running = self.held_run(store, "ann", "running")
        self.write(store, running.append(_question("q")))
        ready = self._asking(store, "ready")
        self.write(store, ready.claim("ann"), ready.append(Released()))
        waiting = self.held_run(store, "ann", "waiting for a time too")
        self.write(store, waiting.append(_question("q"), Slept(key=KEY, until_us=5), Released(reason="waits")))
        self.held_run(store, "ann", "busy")
        sleeping = self.held_run(store, "ann", "sleeping")
        self.write(store, sleeping.append(Slept(key=KEY, until_us=5), Released(reason="waits")))
        for one in self.stores(store):
            statuses = {row.run_id: row.fold.status for row in self.do(one.rows(ASKING, None, 10)).rows}
            assert statuses == {
                "created asking": "paused",
                "paused": "paused",
                "running": "running",
                "ready": "ready",
                "waiting for a time too": "paused",
            }

    def test_a_run_asks_until_its_last_gate_is_closed(self) -> None:
        store = self.fresh()
        two = self.held_run(store, "ann", "two")
        self.write(store, two.append(_question("first")))
        self.clock.turn(1)
        one = self._asking(store, "one")
        self.clock.turn(1)
        self.write(store, two.append(_question("second")))
        assert self.ids(store, ASKING) == ["two", "one"]
        self.write(store, two.append(Answered(gate="first", key=KEY)))
        assert self.ids(store, ASKING) == ["one", "two"]
        self.write(store, two.append(Answered(gate="second", key=KEY)))
        assert self.ids(store, ASKING) == ["one"]
        self.write(store, one.append(Expired(gate="one", key=KEY)))
        assert self.ids(store, ASKING) == []
        self.write(store, one.append(_question("again")))
        assert self.ids(store, ASKING) == ["one"]

    def test_a_run_that_ended_or_is_deleted_asks_nothing(self) -> None:
        store = self.fresh()
        ended = self.held_run(store, "ann", "ended")
        self.write(store, ended.append(_question("q")))
        self._asking(store, "deleted")
        self.write(store, ended.append(Finished()))
        self.do(store.delete("deleted", lambda view: None))
        assert self.ids(store, ASKING) == []
        self.run(store, "deleted again")
        assert self.ids(store, ASKING) == []

    def test_a_run_goes_on_asking_while_its_holder_saves(self) -> None:
        store = self.fresh()
        pen = self.held_run(store, "ann")
        self.write(store, pen.append(_question("q")))
        self.clock.turn(1)
        self._asking(store, "later")
        self.write(store, pen.save()._replace(moved=False), pen.append(Noted(namespace="progress"), moved=False))
        for one in self.stores(store):
            assert self.ids(one, ASKING) == ["r", "later"]

    def test_runs_that_ask_may_be_filtered(self) -> None:
        store = self.fresh()
        self.do(store.enlist("ann", 30))
        past_us, later_us = self.clock.now_us() - 1, self.clock.now_us() + 10**9
        self._asking(store, "job 1", until_us=past_us, workflow="x")
        self.write(store, self._asking(store, "job 2").append(Tagged(tags={"team": "a", "size": 1})))
        held = self.held_run(store, "ann", "held", workflow="x")
        self.write(store, held.append(_question("q", past_us), Tagged(tags={"team": "a"})))
        left = self.held_run(store, "gone", "left")
        self.write(store, left.append(_question("q", later_us)))
        self.write(store, self.pen("fork").open(parent="job 1"))
        fork = self.run(store, "fork that asks", parent="job 1")
        self.write(store, fork.append(_question("q", later_us)))
        free = self._asking(store, "free")
        self.write(store, free.claim("ann"), free.append(Released()))
        self.run(store, "asks nothing", workflow="x", tags={"team": "a", "size": 1})

        everything = ["fork that asks", "free", "held", "job 1", "job 2", "left"]
        cases: list[tuple[Query, list[str]]] = [
            (ASKING, everything),
            (ASKING._replace(workflow="x"), ["held", "job 1"]),
            (ASKING._replace(workflow="none"), []),
            (ASKING._replace(status=("paused",)), ["fork that asks", "job 1", "job 2"]),
            (ASKING._replace(status=("ready", "running")), ["free", "held", "left"]),
            (ASKING._replace(status=("failed",)), []),
            (ASKING._replace(tags={"team": "a"}), ["held", "job 2"]),
            (ASKING._replace(tags={"team": "a", "size": 1}), ["job 2"]),
            (ASKING._replace(tags={"team": "b"}), []),
            (ASKING._replace(starts_with="job"), ["job 1", "job 2"]),
            (ASKING._replace(starts_with="f"), ["fork that asks", "free"]),
            (ASKING._replace(parent="job 1"), ["fork that asks"]),
            (ASKING._replace(due=True), ["free", "job 1", "left"]),
            (ASKING._replace(due=True, status=("paused",)), ["job 1"]),
            (ASKING._replace(due=True, status=("running", "ready")), ["free", "left"]),
            (ASKING._replace(due=True, workflow="x"), ["job 1"]),
            (ASKING._replace(workflow="x", status=("running",), tags={"team": "a"}, starts_with="h"), ["held"]),
        ]
        for query, ids in cases:
            assert sorted(self.ids(store, query)) == ids, query
            assert sorted(self._pages(store, query, 1)) == ids, query

    def test_pages_of_runs_that_ask_have_each_once(self) -> None:
        store = self.fresh()
        self._runs(store, *(f"quiet {number}" for number in range(5)), apart=0)
        ids = [f"r{number:02}" for number in range(11)]
        for number, one in enumerate(ids):
            self._asking(store, one)
            self.clock.turn(number % 3)  # some at the same moment
        for limit in (1, 2, 3, 10, 11, 12):
            assert self._pages(store, ASKING, limit) == ids
            assert self._pages(store, Query(order="asking"), limit) == ids[::-1]

    def test_a_page_of_runs_that_ask_goes_on_behind_one_that_was_answered(self) -> None:
        store = self.fresh()
        pens: dict[str, Pen] = {}
        for one in ("a", "b", "c", "d"):
            pens[one] = self._asking(store, one)
            self.clock.turn(1)
        page = self.do(store.rows(ASKING, None, 2))
        self.write(store, pens["b"].append(Answered(gate="b", key=KEY)))
        for one in self.stores(store):
            assert [row.run_id for row in self.do(one.rows(ASKING, page.next, 2)).rows] == ["c", "d"]

    # --- pages ---------------------------------------------------------------------------------------------------

    def test_pages_have_every_run_once(self) -> None:
        store = self.fresh()
        ids = [f"r{number}" for number in range(11)]
        self._runs(store, *ids)
        orders: list[Order] = ["created", "changed"]
        for order in orders:
            for limit in (1, 2, 3, 10, 11, 12):
                assert self._pages(store, Query(order=order, newest_first=False), limit) == ids
                assert self._pages(store, Query(order=order), limit) == ids[::-1]

    def test_runs_of_the_same_moment_are_listed_once_each(self) -> None:
        store = self.fresh()
        ids = ["a", "A", "b", "é", "a b", "a/b", "10", "9", "\U0001f600", "\uffee", "z"]
        self._runs(store, *ids, apart=0)
        for newest_first in (True, False):
            for limit in (1, 2, 4):
                listed = self._pages(store, Query(newest_first=newest_first), limit)
                assert sorted(listed) == sorted(ids)

    def test_a_page_ends_with_the_list(self) -> None:
        store = self.fresh()
        self._runs(store, "a", "b")
        assert self.do(store.rows(Query(), None, 2)).next is None
        assert self.do(store.rows(Query(), None, 1)).next is not None

    def test_pages_of_a_filtered_list_have_every_run_once(self) -> None:
        store = self.fresh()
        for number in range(12):
            self.run(store, f"r{number:02}", tags={"even": number % 2 == 0})
            self.clock.turn(1)
        listed = self._pages(store, Query(tags={"even": True}, newest_first=False), 2)
        assert listed == [f"r{number:02}" for number in range(0, 12, 2)]

    def test_runs_that_come_while_paging_make_neither_gaps_nor_doubles(self) -> None:
        for newest_first in (True, False):
            store = self.fresh() if newest_first else self.opened(self.open_store(self.clock))
            before = [f"{newest_first} {number}" for number in range(6)]
            self._runs(store, *before)
            query = Query(newest_first=newest_first, starts_with=str(newest_first))
            listed: list[str] = []
            cursor: str | None = None
            for turn in range(100):
                page = self.do(store.rows(query, cursor, 2))
                listed += [row.run_id for row in page.rows]
                cursor = page.next
                if cursor is None:
                    break
                if turn < 3:
                    self._runs(store, f"{newest_first} new {turn}")
            assert len(listed) == len(set(listed))
            assert set(before) <= set(listed)
            assert [one for one in listed if one in before] == (before[::-1] if newest_first else before)

    def test_a_page_goes_on_behind_a_run_that_is_deleted(self) -> None:
        store = self.fresh()
        self._runs(store, "a", "b", "c")
        page = self.do(store.rows(Query(newest_first=False), None, 2))
        self.do(store.delete("b", lambda view: None))
        rest = self.do(store.rows(Query(newest_first=False), page.next, 2))
        assert [row.run_id for row in rest.rows] == ["c"]

    def test_a_cursor_works_in_another_store_on_the_same_runs(self) -> None:
        store = self.fresh()
        self._runs(store, "a", "b", "c")
        page = self.do(store.rows(Query(), None, 1))
        for one in self.stores(store):
            assert [row.run_id for row in self.do(one.rows(Query(), page.next, 5)).rows] == ["b", "a"]

    def test_what_is_no_cursor_is_refused(self) -> None:
        store = self.fresh()
        self._runs(store, "a")
        for cursor in ("nonsense", "a", "1", "%%%", "é", "[]", "bnVsbA==", "' OR 1=1 --", "\0"):
            self._assert_refused(store, Query(), cursor)

    def test_a_cursor_of_another_list_is_refused(self) -> None:
        store = self.fresh()
        self._asking(store, "a")
        self._asking(store, "b")
        orders: list[Order] = ["created", "changed", "asking"]
        queries = [Query(order=order, newest_first=first) for order in orders for first in (True, False)]
        for query in queries:
            cursor = self.do(store.rows(query, None, 1)).next
            assert cursor is not None
            for other in queries:
                if other != query:
                    self._assert_refused(store, other, cursor)

    def _assert_refused(self, store: Store, query: Query, cursor: str) -> None:
        try:
            self.do(store.rows(query, cursor, 5))
        except BadInput:
            return
        raise AssertionError(f"{cursor!r} was taken for a cursor of {query}")


def _question(gate: str, until_us: int | None = None) -> Asked:
    return Asked(gate=gate, key=KEY, until_us=until_us)
