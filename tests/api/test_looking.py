"""Reading a run without claiming it."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

import keepstep
from keepstep.log.records import Asked, CancelRequested


def at(clock):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=clock.now_us())


def test_a_look_tells_everything_of_a_run(place):
    store = place.open()
    created = at(place.clock)
    with store.run("r", "report") as run:
        place.clock.turn(1)
        run.save({"n": 1}, next="plan", label="first")
        saved = at(place.clock)
        run.tag(customer="ada", priority=2)
        run.note("1 of 7")
        place.clock.turn(1)
    left = at(place.clock)

    look = store.look("r")

    assert (look.run_id, look.workflow, look.status) == ("r", "report", "ready")
    assert (look.step, look.next, look.label, look.state) == (1, "plan", "first", {"n": 1})
    assert (look.created, look.saved, look.changed) == (created, saved, left)
    assert (look.tags, look.note) == ({"customer": "ada", "priority": 2}, "1 of 7")
    assert (look.result, look.error, look.holder, look.parent) == (None, None, None, None)
    assert (look.gates, look.until, look.cancelling) == ((), None, False)
    assert (look.line, look.epoch, look.incarnation, look.deaths) == (1, 1, 1, 0)


def test_a_look_at_a_held_run_sees_what_was_saved_last(place):
    holder, other = place.open(), place.open()
    with holder.run("r", "w") as run:
        for number in range(3):
            run.save({"n": number})
            look = other.look("r")
            assert (look.status, look.state) == ("running", {"n": number})
            assert look.holder.stands


def test_a_look_at_an_orphan_says_that_its_holder_is_gone(place):
    dead, other = place.open(), place.open()
    dead.claim("r", "w").save([1])
    place.kill(dead)

    look = other.look("r")

    assert look.status == "running"
    assert not look.holder.stands


def test_looking_writes_nothing(store):
    store.save("r", {"n": 1}, workflow="w")
    first = store.look("r")

    store.load("r")
    store.history("r")
    store.verify("r")
    store.size("r")

    assert store.look("r") == first


def test_a_run_without_a_checkpoint_has_no_state(store):
    store.claim("r", "w").close()

    look = store.look("r")
    assert (look.state, look.step, look.next, look.saved) == (None, None, None, None)


@pytest.mark.parametrize("error", [None, ValueError("no")])
def test_an_ended_run_shows_its_end(store, error):
    with suppress(ValueError), store.run("r", "w") as run:
        run.save([1])
        if error:
            raise error
        run.finish({"total": 7})

    look = store.look("r")
    if error:
        assert (look.status, look.result, look.error["message"]) == ("failed", None, "no")
    else:
        assert (look.status, look.result, look.error) == ("finished", {"total": 7}, None)


def test_a_request_to_cancel_is_seen(place):
    store = place.open()
    store.save("r", [1], workflow="w")
    place.append(store, "r", CancelRequested())

    assert store.look("r").cancelling
    assert store.runs().items[0].cancelling


def test_a_waiting_run_shows_its_gates(place):
    store = place.open()
    place.leave_to_wait(store, store.claim("r", "w"), Asked(gate="refund", key=b"k" * 16))

    assert store.look("r").gates == ("refund",)
    assert store.runs().items[0].gates == ("refund",)


def test_the_digest_is_the_end_of_the_chain(store):
    store.save("r", {"n": 1}, workflow="w")
    before = store.look("r").digest
    store.save("r", {"n": 2})

    report = store.verify("r", expect=before)

    assert report.ok
    assert report.digest == store.look("r").digest != before
    assert report.records == store.look("r").seq
    assert report.last_good == store.look("r").seq


def test_a_digest_of_another_log_is_told(store):
    store.save("r", {"n": 1}, workflow="w")
    store.save("other", {"n": 1}, workflow="w")

    report = store.verify("r", expect=store.look("other").digest)

    assert not report.ok
    assert "another log" in report.damage[0].what


@pytest.mark.parametrize("expect", ["", "abc", "zz" * 16, 5, b"0" * 32])
def test_a_digest_is_hex(memory_store, expect):
    memory_store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.BadInput, match="expect="):
        memory_store.verify("r", expect=expect)


def test_what_was_looked_at_cannot_be_changed(store):
    store.save("r", {"n": 1}, workflow="w")
    look = store.look("r")

    with pytest.raises(AttributeError):
        look.status = "finished"


def test_damage_is_named_and_what_is_whole_can_still_be_read(place):
    store = place.open()
    for number in range(4):
        store.save("r", {"text": f"words {number} " * 40}, workflow="w")
    good, bad = store.at("r", step=3), store.at("r", step=4)
    place.damage(store, "r", bad.seq)

    with pytest.raises(keepstep.Damaged, match=f"(?i)record {bad.seq} of run 'r'"):
        store.look("r")
    report = store.verify("r")

    assert [one.seq for one in report.damage] == [bad.seq]
    assert report.last_good == good.seq
    assert store.at("r", seq=good.seq).state == good.state
    assert [one.step for one in store.history("r").items] == [4, 3, 2, 1]


def test_handles_say_what_they_are(store):
    with store.run("r", "w") as run:
        assert "'r'" in repr(run)
    assert store.url in repr(store)
