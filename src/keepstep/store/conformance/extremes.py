"""Names and sizes that no store expects."""

from __future__ import annotations

import random

from keepstep.log.chain import Stored
from keepstep.log.fold import decode_fold, encode_fold
from keepstep.log.grow import Draft
from keepstep.log.records import Noted, Saved, Tagged
from keepstep.store.base import Append, Query
from keepstep.store.conformance.bench import Bench

HOSTILE_IDS = (
    "a/b", "a_b", "a\\b", "a:b", "a.b", "a b", "a-b", "../x", "x", "/etc/x", "..", ".", "...", "/", "\\", ":", " ", "~",
    "CON", "con", "Con", "NUL", "nul", "nul.txt", "com1", "LPT9.x", "aux", "con ", "run", "RUN", "Run", "run.", "run ",
    " run", "run..", "run. ", "r\u00e9sum\u00e9", "re\u0301sume\u0301", "\u00e5", "A\u030a", "\u212b", "\ufb01", "fi",
    "\u00df", "ss", "SS", "\u0130", "i", "I", "\u0131", "\u212a", "k", "K", "a\nb", "a\tb", "a\rb", "\x7f", "\x1b[31m",
    "a\0b", "a\0c", "%", "%2f", "%41", "a%2fb", "%252f", "*", "?", "[a]", "'", '"', "`", "$HOME", "$(rm)", "-rf", "--",
    "'; DROP TABLE runs; --", "<b>", "&amp;", "null", "None", "0", "00", "1e3", "\u202e", "\u200b", "\ufeff", "\ufffe",
    "\U0001f600", "\U0010ffff", ".hidden", "x.jsonl", "x.jsonl.tmp", "lock", "keepstep.json", "proj/task.1 final",
    "x" * 512, "x" * 511 + "y", "X" * 512, "x" * 255, "x" * 256, "/" * 512, "\u00e9" * 256, "e\u0301" * 170, "." * 300,
)  # fmt: skip


class Extremes(Bench):
    def test_every_id_is_a_run_of_its_own(self) -> None:
        store = self.fresh()
        assert len(set(HOSTILE_IDS)) == len(HOSTILE_IDS)
        appends = [self.pen(one).open(body=f"of {one}".encode()) for one in HOSTILE_IDS]
        self.write(store, *appends)
        for one in self.stores(store):
            assert sorted(self.ids(one)) == sorted(HOSTILE_IDS)
            for append in appends:
                assert self.do(one.records(append.run_id)) == list(append.records)
                view = self.view(one, append.run_id)
                assert view.run_id == append.run_id
                assert view.row == decode_fold(encode_fold(append.row))

    def test_every_id_can_be_written_claimed_and_deleted_alone(self) -> None:
        store = self.fresh()
        pens = [self.run(store, one) for one in HOSTILE_IDS[:60]]
        for pen in pens[::2]:
            self.write(store, pen.save())
        for pen in pens[1::2]:
            assert self.do(store.delete(pen.run_id, lambda view: None)) is True
        assert sorted(self.ids(store)) == sorted(pen.run_id for pen in pens[::2])
        for pen in pens[::2]:
            assert self.view(store, pen.run_id).row == pen.row.freeze()

    def test_texts_may_hold_anything(self) -> None:
        store = self.fresh()
        text = "\0\n\r\"'\\%_*[é\u0301\U0001f600\u2028hex:00"
        pen = self.run(store, workflow=text, tags={text: text})
        self.write(store, pen.save(label=text, next=text), pen.append(Tagged(tags={"hex:ff": "hex:00", "": ""})))
        for one in self.stores(store):
            assert self.view(one).row == pen.row.freeze()
            assert self.ids(one, Query(workflow=text, tags={text: text})) == ["r"]
            assert self.damage(one) == []

    def test_numbers_keep_their_exact_values(self) -> None:
        store = self.fresh()
        tags = {"f": 0.1, "tiny": 5e-324, "huge": 1.7976931348623157e308, "-0": -0.0, "i": 2**63 - 1, "m": -(2**63)}
        pen = self.run(store, tags=dict(tags))
        row = self.view(store).row
        assert row is not None
        assert row == pen.row.freeze()
        assert {name: repr(value) for name, value in row.tags.items()} == {
            name: repr(value) for name, value in tags.items()
        }

    def test_tags_may_be_no_numbers(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        self.write(store, pen.append(Tagged(tags={"nan": float("nan"), "inf": float("inf")})))
        assert self.damage(store) == []
        row = self.view(store).row
        assert row is not None
        assert {name: repr(value) for name, value in row.tags.items()} == {"nan": "nan", "inf": "inf"}

    def test_a_run_may_have_twenty_thousand_records(self) -> None:
        store = self.fresh()
        pen = self.run(store)
        written: list[Stored] = []
        for _ in range(20):
            append = pen.append(*(Draft(Noted(namespace="n", key=str(number)), b"x") for number in range(1000)))
            written += append.records
            self.write(store, append)
        for one in self.stores(store):
            assert self.view(one).row == pen.row.freeze()
            assert self.do(one.records("r", after=1)) == written
            assert self.do(one.records("r", after=9_999, limit=3)) == written[9_998:10_001]
            assert self.do(one.records("r", newest_first=True, limit=2)) == written[:-3:-1]
            assert self.do(one.pick("r", [2, 10_000, 20_001])) == [written[0], written[9_998], written[-1]]
        self.write(store, pen.save())
        assert self.do(store.size("r")).records == 20_002

    def test_a_batch_may_be_large(self) -> None:
        store = self.fresh()
        ids = [f"r{number:03}" for number in range(512)]
        appends: list[Append] = []
        for one in ids:
            pen = self.pen(one)
            appends += [pen.open(), pen.save()]
        self.write(store, *appends)
        assert sorted(self.ids(store)) == ids

    def test_random_runs_read_back_as_they_were_written(self) -> None:
        store = self.fresh()
        chance = random.Random(11)  # noqa: S311 - nothing secret
        pens = [self.run(store, f"r{number}") for number in range(4)]
        written: dict[str, list[Stored]] = {pen.run_id: [] for pen in pens}
        for _ in range(40):
            pen = chance.choice(pens)
            sizes = chance.choices((0, 1, 100, 5000), k=chance.randint(1, 4))
            depth = pen.row.depth
            drafts = [
                Draft(Saved(step=number, depth=depth + number + 1), chance.randbytes(size))
                for number, size in enumerate(sizes)
            ]
            append = pen.append(*drafts)
            written[pen.run_id] += append.records
            self.write(store, append)
        for one in self.stores(store):
            for pen in pens:
                assert self.do(one.records(pen.run_id, after=1)) == written[pen.run_id]
                assert self.view(one, pen.run_id).row == pen.row.freeze()
