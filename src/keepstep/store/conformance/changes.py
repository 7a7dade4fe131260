"""Waiting until something has changed."""

from __future__ import annotations

import asyncio
import threading
from typing import NoReturn

from keepstep.errors import NotAllowed
from keepstep.store.base import Append, Decision, Store, View
from keepstep.store.conformance.bench import Bench, drive
from keepstep.store.conformance.pen import claiming

LONG_SECONDS = 10_000.0


class Changes(Bench):
    def _now(self, store: Store) -> int:
        return self.do(store.changes(None, LONG_SECONDS))

    def test_the_number_stays_while_nothing_changes(self) -> None:
        store = self.fresh()
        self.run(store)
        seen = self._now(store)
        assert self._now(store) == seen
        assert self.do(store.changes(seen, 0)) == seen
        assert self.do(store.changes(seen, 0.02)) == seen

    def test_the_number_differs_after_everything_that_is_written(self) -> None:
        store = self.fresh()
        stores = self.stores(store)
        seen = [self._now(store)]
        pen = self.pen()

        def changed() -> None:
            numbers = [self.do(one.changes(seen[-1], LONG_SECONDS)) for one in stores]
            assert set(numbers).isdisjoint(seen)
            seen.append(numbers[0])

        self.write(store, pen.open())
        changed()
        self.write(stores[-1], pen.save()._replace(moved=False))
        changed()
        self.do(store.claim(None, 1, claiming(self.clock, "ann")))
        changed()
        self.do(store.delete("r", lambda view: None))
        changed()

    def test_what_is_not_written_wakes_nobody(self) -> None:
        store = self.fresh()
        self.run(store)
        seen = self._now(store)

        def refuse(view: View) -> NoReturn:
            raise NotAllowed("no", "r")

        self.outcome(store, Decision("r", refuse))
        self.outcome(store, self.pen().open())
        self.view(store)
        assert self.do(store.changes(seen, 0)) == seen

    def test_who_waits_is_woken(self) -> None:
        store = self.fresh()
        for writer in self.stores(store):
            seen = self._now(store)
            append = self.pen(f"run {seen}").open()
            assert self._wait_while(store, seen, writer, append) != seen

    def _wait_while(self, store: Store, seen: int, writer: Store, append: Append) -> int:
        if not store.blocking:

            async def both() -> int:
                waiting = asyncio.create_task(_coroutine(store, seen))
                await asyncio.sleep(0.02)
                await writer.commit([append])
                return await waiting

            return self.do(both())
        numbers: list[int] = []
        thread = threading.Thread(target=lambda: numbers.append(drive(store.changes(seen, LONG_SECONDS))))
        thread.start()
        thread.join(0.02)
        self.write(writer, append)
        thread.join(20)
        assert not thread.is_alive(), "nobody woke the waiting thread"
        return numbers[0]


async def _coroutine(store: Store, seen: int) -> int:
    return await store.changes(seen, LONG_SECONDS)
