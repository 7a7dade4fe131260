"""Bodies: of any content, dropped or stored anew by retention."""

from __future__ import annotations

import random

from keepstep.log.grow import Draft
from keepstep.log.records import Noted, Pruned
from keepstep.store.base import Conflict, Store
from keepstep.store.conformance.bench import Bench
from keepstep.store.conformance.pen import Pen


class Bodies(Bench):
    def _five(self, store: Store) -> Pen:
        """A run of five records, with bodies of 1,000 bytes."""
        pen = self.pen()
        self.write(store, pen.open(body=b"1" * 1000), pen.save(b"2" * 1000))
        self.write(store, pen.save(b"3" * 1000))
        self.write(store, pen.save(b"4" * 1000), pen.save(b"5" * 1000))
        return pen

    def _bodies(self, store: Store) -> list[bytes | None]:
        return [one.body[:1] if one.body else one.body for one in self.do(store.records("r"))]

    def test_bodies_are_dropped_with_the_record_that_says_so(self) -> None:
        store = self.fresh()
        pen = self._five(store)
        heads = self.do(store.records("r", bodies=False))
        self.write(store, pen.append(Pruned(dropped=[(1, 2), (4, 4)]), dropped=[(1, 2), (4, 4)]))
        for one in self.stores(store):
            assert self._bodies(one) == [None, None, b"3", None, b"5", None]
            assert self.do(one.records("r", until=5, bodies=False)) == heads
            assert [record.body for record in self.do(one.pick("r", [2, 3]))] == [None, b"3" * 1000]
            assert self.view(one).row == pen.row.freeze()

    def test_a_range_may_reach_beyond_the_log(self) -> None:
        store = self.fresh()
        pen = self._five(store)
        self.write(store, pen.append(Pruned(dropped=[(4, 10**6)]), dropped=[(4, 10**6)]))
        assert self._bodies(store) == [b"1", b"2", b"3", None, None, None]

    def test_bodies_are_stored_anew(self) -> None:
        store = self.fresh()
        pen = self._five(store)
        renewed = [(2, b"II"), (4, b""), (5, b"V" * 3000)]
        self.write(store, pen.append(Pruned(dropped=[(3, 3)]), dropped=[(3, 3)], renewed=renewed))
        for one in self.stores(store):
            bodies = [record.body for record in self.do(one.records("r"))]
            assert bodies == [b"1" * 1000, b"II", None, b"", b"V" * 3000, None]

    def test_a_run_goes_on_after_it_was_pruned(self) -> None:
        store = self.fresh()
        pen = self._five(store)
        self.write(store, pen.append(Pruned(dropped=[(1, 4)]), dropped=[(1, 4)]), pen.save(b"7"))
        self.write(store, pen.save(b"8"))
        self.write(store, pen.append(Pruned(dropped=[(7, 7)]), dropped=[(7, 7)]))
        for one in self.stores(store):
            assert self._bodies(one) == [None, None, None, None, b"5", None, None, b"8", None]
            assert self.damage(one) == []

    def test_only_the_run_that_is_named_is_pruned(self) -> None:
        store = self.fresh()
        pen = self._five(store)
        self.run(store, "other")
        self.write(store, pen.append(Pruned(), dropped=[(1, 5)]))
        assert self.do(store.records("other"))[0].body == b"input"

    def test_an_append_that_is_not_written_prunes_nothing(self) -> None:
        store = self.fresh()
        late = self._five(store).copy()
        late.save()
        assert self.outcome(store, late.append(Pruned(), dropped=[(1, 5)], renewed=[(2, b"x")])) == Conflict()
        assert self._bodies(store) == [b"1", b"2", b"3", b"4", b"5"]

    def test_what_is_dropped_weighs_nothing(self) -> None:
        store = self.fresh()
        pen = self._five(store)
        assert self.do(store.size("r")).body_bytes == 5000
        self.write(store, pen.append(Pruned(), dropped=[(1, 3)], renewed=[(4, b"44")]))
        assert self.do(store.size("r")).body_bytes == 1002

    def test_a_body_may_hold_any_bytes(self) -> None:
        store = self.fresh()
        chance = random.Random(7)  # noqa: S311 - nothing secret
        bodies = [
            b"", b"\0", b"\n", b"\r\n", b'"', b"\\", b"null", b"\xff\xfe", bytes(range(256)), b"{}\n{}\n",
            b"\xed\xa0\x80", *(chance.randbytes(size) for size in (1, 2, 3, 511, 512, 4096, 70_000)),
        ]  # fmt: skip
        pen = self.run(store)
        self.write(store, pen.append(*(Draft(Noted(namespace="n"), body) for body in bodies)))
        for one in self.stores(store):
            assert [record.body for record in self.do(one.records("r", after=1))] == bodies

    def test_no_body_is_not_an_empty_one(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        self.write(store, pen.append(Draft(Noted(namespace="n"), b""), Draft(Noted(namespace="n"), None)))
        assert [one.body for one in self.do(store.records("r", after=1))] == [b"", None]
        assert [one.body for one in self.do(store.pick("r", [2, 3]))] == [b"", None]

    def test_a_body_may_have_five_megabytes(self) -> None:
        store = self.fresh()
        large = random.Random(1).randbytes(5 << 20)  # noqa: S311 - nothing secret
        pen = self.run(store)
        self.write(store, pen.save(large), pen.save(b"small"))
        for one in self.stores(store):
            assert [record.body for record in self.do(one.pick("r", [2, 3]))] == [large, b"small"]
        assert self.do(store.size("r")).body_bytes == len(large) + len(b"input" + b"small")
