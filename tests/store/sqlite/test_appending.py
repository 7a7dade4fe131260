from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from keepstep.errors import Damaged, NotAllowed, TooLarge
from keepstep.log.fold import Fold
from keepstep.log.grow import Draft
from keepstep.log.ledger import key_of_label
from keepstep.log.records import Began, Noted, Returned, Saved, Tagged
from keepstep.store.base import Committed, Conflict, Decision, Gone, Query, Refused, View
from tests.store.sqlite.growing import Log, done, opened


def raw(store, statement, *values):
    connection = apsw.Connection(store.path)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def test_what_was_appended_is_read_back(store):
    log = Log("r")
    appends = [log.opened(owner="o"), log.saved(b"one"), log.saved(b"", label="two")]
    outcomes = done(store.commit(appends))
    assert [type(one) for one in outcomes] == [Committed] * 3
    records = done(store.records("r"))
    assert records == [one for append in appends for one in append.records]
    view = done(store.view("r"))
    assert isinstance(view.row, Fold)
    assert view.row == log.row.freeze()


def test_an_append_behind_another_end_conflicts(store):
    log, other = Log("r"), Log("r")
    first = log.opened()
    assert isinstance(done(store.commit([first]))[0], Committed)
    assert done(store.commit([other.opened(), first, Log("none").opened()._replace(after_seq=3)])) == [Conflict()] * 3
    late = log.saved()
    assert isinstance(done(store.commit([late]))[0], Committed)
    assert done(store.commit([late, late._replace(moved=True)])) == [Conflict(), Conflict()]
    assert len(done(store.records("r"))) == 2


def test_the_end_is_compared_by_digest_too(store):
    log = Log("r")
    done(store.commit([log.opened()]))
    forged = log.saved()._replace(after_digest=bytes(16))
    assert done(store.commit([forged])) == [Conflict()]


def test_entries_of_one_run_are_taken_in_order(store):
    log = Log("r")
    seen = []

    def look(view):
        seen.append(view.row and view.row.seq)

    batch = [Decision("r", look), log.opened(), Decision("r", look), log.saved(), Decision("r", look)]
    outcomes = done(store.commit(batch))
    assert all(isinstance(one, Committed) for one in outcomes)
    assert seen == [None, 1, 2]


def test_a_refused_entry_leaves_no_trace_and_harms_no_other(store):
    def refuse(view: View):
        raise NotAllowed("no", view.run_id)

    a, b = Log("a"), Log("b")
    outcomes = done(store.commit([a.opened(), Decision("c", refuse), Log("a").opened(), b.opened()]))
    assert [type(one) for one in outcomes] == [Committed, Refused, Conflict, Committed]
    assert done(store.size(None))[:2] == (2, 2)


def test_a_decision_that_breaks_undoes_the_whole_batch(store):
    def fail(view: View):
        raise ZeroDivisionError

    log = Log("a")
    first = log.opened()
    with pytest.raises(ZeroDivisionError):
        done(store.commit([first, Decision("b", fail)]))
    assert done(store.view("a")).row is None
    assert isinstance(done(store.commit([first]))[0], Committed)


def test_a_late_write_to_a_deleted_run_is_gone(store):
    log = Log("r")
    done(store.commit([log.opened(owner="o"), log.saved()]))
    late = log.saved()
    assert done(store.delete("r", lambda view: None)) is True
    assert done(store.delete("r", lambda view: None)) is False
    assert done(store.view("r")).buried == (1, 1)
    assert done(store.commit([late, Log("r").opened()])) == [Gone(), Gone()]
    again = Log("r")
    assert isinstance(done(store.commit([again.opened(incarnation=2)]))[0], Committed)
    assert done(store.commit([late, late._replace(moved=True)])) == [Gone(), Gone()]
    assert done(store.view("r")).buried == (0, 0)


def test_delete_erases_everything_and_may_be_refused(store):
    log = Log("r")
    tagged = Draft(Tagged(tags={"a": 1}))
    done(store.commit([log.opened(owner="o"), log.append(tagged), log.saved(b"a secret " * 300, label="x")]))

    def refuse(view):
        raise NotAllowed("held", view.run_id)

    with pytest.raises(NotAllowed):
        done(store.delete("r", refuse))
    assert done(store.size("r")).records == 4
    done(store.delete("r", lambda view: None))
    for table in ("runs", "records", "ledger", "tags"):
        assert raw(store, f"SELECT count(*) FROM {table}") == [(0,)]
    done(store.close())
    assert b"a secret" not in Path(store.path).read_bytes()


def test_the_ledger_is_found_by_key(store):
    log = Log("r")
    one, two = b"1" * 16, b"2" * 16
    done(store.commit([log.opened(owner="o"), log.append(Draft(Began(key=two, tool="t")), moved=False)]))
    done(store.commit([log.append(Draft(Began(key=one, tool="t")), moved=False), log.saved(label="here")]))
    done(store.commit([log.append(Draft(Returned(key=two, began=3)), moved=False)]))
    everything = done(store.effects("r"))
    assert [(entry.key, entry.began, entry.ended, entry.how) for entry in everything] == [
        (two, 3, 6, "returned"),
        (one, 4, 0, "began"),
        (key_of_label("here"), 5, 5, "saved"),
    ]
    assert done(store.effects("r", [one, b"none", one])) == [everything[1]]
    assert done(store.effects("none")) == []


def test_parts_of_a_log_are_read(store):
    log = Log("r")
    done(store.commit([log.opened(), *(log.saved(b"%d" % n) for n in range(2, 8))]))

    def seqs(**how):
        return [one.seq for one in done(store.records("r", **how))]

    assert seqs(after=2, until=5) == [3, 4, 5]
    assert seqs(newest_first=True, limit=2) == [7, 6]
    assert seqs(after=5, limit=1) == [6]
    assert seqs(until=0) == []
    assert {one.body for one in done(store.records("r", bodies=False))} == {None}
    assert [(one.seq, one.body) for one in done(store.pick("r", [6, 2, 99, 2, -1]))] == [(2, b"2"), (6, b"6")]
    assert done(store.pick("none", [1])) == done(store.records("none")) == []


def test_bodies_are_dropped_and_stored_anew_with_the_append(store):
    log = Log("r")
    done(store.commit([log.opened(), *(log.saved(b"%d" % n) for n in range(2, 8))]))
    note = log.append(Draft(Noted(namespace="n")), dropped=[(1, 3), (5, 5)], renewed=[(6, b"anew")])
    done(store.commit([note]))
    assert [one.body for one in done(store.records("r"))] == [None, None, None, b"4", None, b"anew", b"7", None]


@pytest.mark.parametrize(
    "ids",
    [
        ("run", "RUN", "Run"),
        ("caf\u00e9", "cafe\u0301"),
        ("a\0b", "a\0c", "a"),
        ("../x", "a/b", "CON", "'; --", "\U0010ffff"),
    ],
)
def test_ids_are_kept_apart_to_the_byte(store, ids):
    for run_id in ids:
        done(store.commit([Log(run_id).opened(workflow=run_id)]))
    assert [done(store.view(run_id)).row.workflow for run_id in ids] == list(ids)
    assert {row.run_id for row in done(store.rows(Query(), None, 100)).rows} == set(ids)


def test_a_run_and_a_store_can_be_too_long(store):
    log = Log("r")
    done(store.commit([log.opened()]))
    log.row.seq = (1 << 32) - 1
    [outcome] = done(store.commit([log.saved()]))
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error, TooLarge)
    raw(store, "UPDATE runs SET key = 2147483647")
    [first, second] = done(store.commit([Log("s").opened(), log.saved()._replace(run_id="t")]))
    assert isinstance(first, Refused)
    assert isinstance(first.error, TooLarge)
    assert not isinstance(second, Committed)
    assert done(store.view("s")).row is None


def test_a_damaged_row_is_named_and_harms_no_other_run(store):
    done(store.commit([Log("good").opened(), Log("bad").opened()]))
    raw(store, "UPDATE runs SET row = CAST(substr(row, 1, 20) || x'00' || substr(row, 22) AS BLOB) WHERE id = 'bad'")
    with pytest.raises(Damaged, match="'bad'"):
        done(store.view("bad"))
    bad, good = done(store.commit([Decision("bad", lambda view: None), Decision("good", lambda view: None)]))
    assert isinstance(bad, Refused)
    assert isinstance(bad.error, Damaged)
    assert good == Committed(None, 1_000_000)
    raw(store, "UPDATE runs SET row = (SELECT row FROM runs WHERE id = 'good') WHERE id = 'bad'")
    with pytest.raises(Damaged, match="another"):
        done(store.view("bad"))


def test_time_never_runs_backwards(store, clock):
    assert done(store.now()) == 1_000_000
    clock.us = 5
    assert done(store.now()) == done(store.view("r")).now_us == 1_000_000


def test_a_store_weighs_what_it_holds(path):
    store = opened(path)
    log = Log("r")
    done(store.commit([log.opened(owner="o")]))
    for _ in range(40):
        done(store.commit([log.append(*(saving(log, n) for n in range(200)), moved=False)]))
    payload = 8000 * 1024
    weight = done(store.size("r"))
    assert (weight.runs, weight.records, weight.body_bytes) == (1, 8002, payload)
    assert done(store.size("none")) == (0, 0, 0, 0, 0)
    assert done(store.size(None)).file_bytes > payload
    assert done(store.size(None))[:4] == weight[:4]
    done(store.close())
    assert path.stat().st_size / payload < 1.36


def saving(log, n):
    depth = log.row.depth + 1 + n
    return Draft(Saved(step=depth, depth=depth), n.to_bytes(2) * 512)
