"""A store's own life: sizes, reading only, copies, forks of the process, and the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any

from keepstep.errors import ReadOnly, WrongUse
from keepstep.store.base import Query, Store, Weight
from keepstep.store.conformance.bench import Bench
from keepstep.store.conformance.pen import claiming, opening


class Life(Bench):
    def test_a_store_says_what_it_is(self) -> None:
        store = self.fresh()
        assert isinstance(store.url, str)
        assert store.url
        assert store.read_only is False
        assert isinstance(store.blocking, bool)

    def test_a_store_may_be_opened_twice(self) -> None:
        store = self.fresh()
        self.run(store)
        other = self.beside(store)
        assert self.ids(store) == ["r"]
        if other is not None:
            assert self.ids(other) == ["r"]

    def test_the_time_is_that_of_the_clock(self) -> None:
        store = self.fresh()
        before = self.do(store.now())
        self.clock.turn(3600)
        assert self.do(store.now()) - before == 3_600_000_000

    def test_runs_are_weighed(self) -> None:
        store = self.fresh()
        assert self.do(store.size(None))[:4] == (0, 0, 0, 0)
        assert self.do(store.size("none"))[:4] == (0, 0, 0, 0)
        pen = self.run(store, "a")
        self.write(store, pen.save(b"x" * 5000))
        self.run(store, "b")
        for one in self.stores(store):
            heads = {run: sum(len(record.head) for record in self.do(one.records(run))) for run in ("a", "b")}
            assert self.do(one.size("a"))[:4] == (1, 2, heads["a"], 5005)
            assert self.do(one.size("b"))[:4] == (1, 1, heads["b"], 5)
            whole = self.do(one.size(None))
            assert isinstance(whole, Weight)
            assert whole[:4] == (2, 3, heads["a"] + heads["b"], 5010)
            assert whole.file_bytes >= 0

    def test_a_store_that_only_reads_writes_nothing(self) -> None:
        store = self.fresh()
        pen = self.held_run(store, "ann")
        made = self.reopen_read_only(store)
        if made is None:
            return
        reader = self.opened(made)
        assert reader.read_only is True
        writes: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            lambda: reader.commit([pen.copy().save()]),
            lambda: reader.claim(None, 1, claiming(self.clock, "bob")),
            lambda: reader.delete("r", lambda view: None),
            lambda: reader.enlist("bob", 30),
            lambda: reader.renew("ann", 30),
        ]
        for write in writes:
            try:
                self.do(write())
            except ReadOnly:
                continue
            raise AssertionError("it was written to a store that only reads")
        assert self.view(reader).row == pen.row.freeze()
        assert len(self.do(reader.records("r"))) == 2
        assert self.ids(reader, Query(due=True)) == ["r"]
        self.write(store, pen.save())
        assert self.view(reader).row == pen.row.freeze()

    def test_a_backup_is_a_store_of_its_own(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        self.run(store, "gone")
        self.do(store.delete("gone", lambda view: None))
        target = self.place_for_backup()
        if target is None:
            return
        self.do(store.backup(target))
        kept = pen.row.freeze()
        self.write(store, pen.save())
        copy = self.opened(self.open_backup(target))
        assert self.view(copy).row == kept
        assert len(self.do(copy.records("r"))) == 1
        assert self.view(copy, "gone").buried == (1, 0)
        assert self.view(store).row == pen.row.freeze()

    def test_closing_twice_is_fine(self) -> None:
        store = self.fresh()
        self.run(store)
        self.do(store.close())
        self.do(store.close())

    def test_a_child_process_takes_nothing_from_its_parent(self) -> None:
        store = self.fresh()
        if not store.blocking or not hasattr(os, "fork"):
            return
        self.do(store.enlist("ann", 30))
        pen = self.held_run(store, "ann")
        child = os.fork()
        if child == 0:
            os._exit(self._in_child(store))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert self.do(store.renew("ann", 30)).stands
        for one in self.stores(store):
            holder = self.view(one).holder
            assert holder is not None
            assert holder.stands
        self.write(store, pen.save())
        assert self.view(store).row == pen.row.freeze()

    def _in_child(self, store: Store) -> int:
        try:
            store.after_fork()
            try:
                row = self.view(store).row
                assert row is not None
                assert row.owner == "ann"
            except WrongUse:
                pass  # a store may say that it cannot be used here
            self.do(store.close())
        except BaseException as error:  # noqa: BLE001 - nothing may leave a forked child but its exit code
            os.write(2, f"in the child: {error!r}\n".encode())
            return 1
        return 0

    def test_a_decision_may_come_right_after_opening(self) -> None:
        store = self.fresh()
        self.do(store.commit([]))
        self.do(store.claim(None, 1, opening(self.clock)))
        assert self.ids(store) == []
