"""Reading a log and its ledger back, whole or in part."""

from __future__ import annotations

from keepstep.log.chain import Stored
from keepstep.log.grow import Draft
from keepstep.log.ledger import LedgerEntry, key_of_label
from keepstep.log.records import Asked, Began, Returned
from keepstep.store.base import Store
from keepstep.store.conformance.bench import Bench
from keepstep.store.conformance.pen import Pen


class Reading(Bench):
    def _ten(self, store: Store) -> list[Stored]:
        """A run of ten records, written in commits of different sizes; the odd ones have bodies."""
        pen = self.pen()
        stored = list(pen.open().records)
        self.write(store, self.pen().open()._replace(records=stored, row=pen.row))
        for count in (1, 3, 5):
            drafts = [pen.save(b"%d" % pen.row.seq if pen.row.seq % 2 else None) for _ in range(count)]
            records = [record for one in drafts for record in one.records]
            self.write(store, drafts[0]._replace(records=records, row=pen.row))
            stored += records
        assert [one.seq for one in stored] == list(range(1, 11))
        return stored

    def test_records_come_in_order_of_seq(self) -> None:
        store = self.fresh()
        stored = self._ten(store)
        assert self.do(store.records("r")) == stored
        assert self.do(store.records("r", newest_first=True)) == stored[::-1]

    def test_records_are_taken_after_one_and_until_another(self) -> None:
        store = self.fresh()
        stored = self._ten(store)
        for after in range(12):
            assert self.do(store.records("r", after=after)) == stored[after:]
            for until in range(12):
                found = self.do(store.records("r", after=after, until=until))
                assert found == stored[after:until]
                found = self.do(store.records("r", after=after, until=until, newest_first=True))
                assert found == stored[after:until][::-1]

    def test_a_limit_counts_from_the_end_that_is_asked_for(self) -> None:
        store = self.fresh()
        stored = self._ten(store)
        for limit in (1, 2, 5, 10, 99):
            assert self.do(store.records("r", limit=limit)) == stored[:limit]
            assert self.do(store.records("r", limit=limit, newest_first=True)) == stored[::-1][:limit]
        assert self.do(store.records("r", after=2, until=8, limit=3)) == stored[2:5]
        assert self.do(store.records("r", after=2, until=8, limit=3, newest_first=True)) == stored[7:4:-1]

    def test_heads_can_be_read_without_bodies(self) -> None:
        store = self.fresh()
        heads = [one._replace(body=None) for one in self._ten(store)]
        assert self.do(store.records("r", bodies=False)) == heads
        assert self.do(store.records("r", bodies=False, newest_first=True, limit=2)) == heads[:-3:-1]

    def test_an_unknown_run_has_nothing(self) -> None:
        store = self.fresh()
        assert self.do(store.records("no")) == []
        assert self.do(store.pick("no", [1])) == []
        assert self.do(store.effects("no")) == []
        assert self.do(store.effects("no", [b"k"])) == []
        assert self.view(store, "no").row is None

    def test_pick_finds_records_by_number(self) -> None:
        store = self.fresh()
        stored = self._ten(store)
        assert self.do(store.pick("r", [4])) == [stored[3]]
        assert self.do(store.pick("r", [9, 2, 5])) == [stored[1], stored[4], stored[8]]
        assert self.do(store.pick("r", list(range(1, 11)))) == stored
        assert self.do(store.pick("r", [])) == []

    def test_pick_leaves_out_what_is_not_there(self) -> None:
        store = self.fresh()
        stored = self._ten(store)
        assert self.do(store.pick("r", [0, 3, 11, 10**9])) == [stored[2]]

    def test_pick_takes_many_numbers(self) -> None:
        store = self.fresh()
        stored = self._ten(store)
        assert self.do(store.pick("r", list(range(1, 5000)))) == stored

    def test_a_reader_gets_bytes(self) -> None:
        store = self.fresh()
        self._ten(store)
        for one in self.do(store.records("r")) + self.do(store.pick("r", [1, 2])):
            assert isinstance(one, Stored)
            assert (type(one.head), type(one.digest)) == (bytes, bytes)
            assert one.body is None or type(one.body) is bytes

    # --- the ledger ----------------------------------------------------------------------------------------------

    def _effects(self, store: Store) -> Pen:
        pen = self.held_run(store, "ann")  # its own records are 1 and 2
        self.write(store, pen.append(Began(key=b"a" * 16, tool="pay"), Began(key=b"b" * 16, tool="mail")))
        self.write(store, pen.append(Draft(Returned(key=b"a" * 16, began=3), b"result")))
        return pen

    def test_the_ledger_tells_where_an_effect_began_and_ended(self) -> None:
        store = self.fresh()
        self._effects(store)
        assert self.do(store.effects("r", [b"a" * 16])) == [LedgerEntry(b"a" * 16, 3, 5, "returned")]
        assert self.do(store.effects("r", [b"b" * 16])) == [LedgerEntry(b"b" * 16, 4, 0, "began")]

    def test_the_whole_ledger_comes_in_order_of_beginning(self) -> None:
        store = self.fresh()
        pen = self._effects(store)
        self.write(store, pen.append(Asked(gate="g", key=b"A" * 16)), pen.save(label="first"))
        for one in self.stores(store):
            found = self.do(one.effects("r"))
            assert [(entry.began, entry.ended, entry.how) for entry in found] == [
                (3, 5, "returned"), (4, 0, "began"), (6, 0, "asked"), (7, 7, "saved"),
            ]  # fmt: skip

    def test_a_key_that_is_used_again_points_to_its_last_use(self) -> None:
        store = self.fresh()
        pen = self._effects(store)
        self.write(store, pen.append(Began(key=b"a" * 16, tool="pay", attempt=2)))
        assert self.do(store.effects("r", [b"a" * 16])) == [LedgerEntry(b"a" * 16, 6, 0, "began")]
        self.write(store, pen.save(label="here"), pen.save(label="here"))
        (here,) = self.do(store.effects("r", [key_of_label("here")]))
        assert here.began == 8

    def test_keys_that_are_not_there_are_left_out(self) -> None:
        store = self.fresh()
        self._effects(store)
        found = self.do(store.effects("r", [b"?" * 16, b"b" * 16, b"", b"a" * 16]))
        assert {one.key for one in found} == {b"a" * 16, b"b" * 16}
        assert self.do(store.effects("r", [])) == []

    def test_many_keys_are_looked_up_at_once(self) -> None:
        store = self.fresh()
        self._effects(store)
        keys = [number.to_bytes(16, "big") for number in range(3000)]
        assert len(self.do(store.effects("r", [*keys, b"a" * 16]))) == 1

    def test_each_run_has_its_own_ledger(self) -> None:
        store = self.fresh()
        self._effects(store)
        self.run(store, "other")
        assert self.do(store.effects("other")) == []
        assert self.do(store.effects("other", [b"a" * 16])) == []
