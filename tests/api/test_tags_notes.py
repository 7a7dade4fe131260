"""Remarks on a run: tags are searched for, notes tell how far it is."""

import pytest

import keepstep
from keepstep.log.records import Cancelled


def test_tags_are_set_changed_and_taken_away(store):
    with store.run("r", "w") as run:
        run.tag(customer="ada", priority=1)
        run.tag({"customer": "bob", "a key": True}, ratio=0.5)
        run.tag(priority=None)
        assert run.tags == {"customer": "bob", "a key": True, "ratio": 0.5}

    assert store.look("r").tags == {"customer": "bob", "a key": True, "ratio": 0.5}


def test_any_name_can_be_a_tag(store):
    names = {"self": 1, "run_id": "x", "tags": 2, "value": "y"}
    with store.run("r", "w") as run:
        run.tag(**names)
    store.tag("r", {"self": 3}, value="z")

    assert store.look("r").tags == {**names, "self": 3, "value": "z"}


def test_tagging_with_nothing_writes_nothing(store):
    with store.run("r", "w") as run:
        seq = store.look("r").seq
        run.tag()
        run.tag({})
        run.save([1])
        assert store.look("r").seq == seq + 1
    store.tag("r")

    assert store.verify("r").ok


def test_tags_given_with_a_claim_held_elsewhere_are_kept(place):
    holder, other = place.open(), place.open()
    with holder.run("r", "w") as run:
        run.save([1])
        other.tag("r", seen=True)
        other.note("r", "from outside")
        run.save([2])
        run.tag(mine=True)
        assert run.tags == {"seen": True, "mine": True}

    look = other.look("r")
    assert (look.state, look.note, look.tags) == ([2], "from outside", {"seen": True, "mine": True})
    assert other.verify("r").ok


@pytest.mark.parametrize("end", ["finish", "fail", "cancel"])
def test_an_ended_run_can_still_be_remarked_on(place, end):
    store = place.open()
    store.save("r", [1], workflow="w")
    if end == "cancel":
        place.append(store, "r", Cancelled())
    else:
        store.carry((lambda run: 1) if end == "finish" else (lambda run: 1 // 0), "r")
    status = store.look("r").status

    store.tag("r", reviewed=True)
    store.note("r", "read by Ada")

    look = store.look("r")
    assert (look.status, look.tags, look.note) == (status, {"reviewed": True}, "read by Ada")


@pytest.mark.parametrize(
    "tags", [{"a": []}, {"a": b"x"}, {"a": object()}, {"a": 1 << 63}, {"a": "x" * 257}, {"x" * 257: 1}, {"": 1}, {1: 1}]
)
def test_what_cannot_be_searched_for_is_no_tag(store, tags):
    store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.BadInput):
        store.tag("r", tags)
    with store.run("r") as run, pytest.raises(keepstep.BadInput):
        run.tag(tags)
    with pytest.raises(keepstep.BadInput):
        store.runs(tags=tags)

    assert store.look("r").tags == {}


@pytest.mark.parametrize("tags", [5, "customer", [("a", 1)]])
def test_tags_are_given_by_name(memory_store, tags):
    memory_store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.BadInput):
        memory_store.tag("r", tags)
    with memory_store.run("r") as run, pytest.raises(keepstep.BadInput):
        run.tag(tags)
    with pytest.raises(keepstep.BadInput):
        memory_store.runs(tags=tags)


def test_a_run_has_so_many_tags_at_most(store):
    with store.run("r", "w") as run:
        run.tag({f"t{number}": number for number in range(32)})
        with pytest.raises(keepstep.BadInput, match="33 tags"):
            run.tag(one_more=1)
        run.tag(t0=None, another=1)

    assert len(store.look("r").tags) == 32
    with pytest.raises(keepstep.BadInput):
        store.tag("r", one_more=1)


# --- notes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["fetched 3 of 7", {"done": 3, "of": 7}, None, [1, (2, 3)], 0])
def test_the_last_note_is_seen(store, value):
    with store.run("r", "w") as run:
        run.note("before")
        run.note(value)
        assert store.look("r").note == value

    assert store.look("r").note == value


def test_a_note_changes_nothing_else(place):
    store = place.open()
    store.save("r", {"n": 1}, next="plan", label="first", workflow="w")
    before = store.look("r")
    place.clock.turn(5)

    store.note("r", "hi")

    after = store.look("r")
    for name in ("status", "step", "next", "label", "state", "created", "changed", "saved", "epoch", "line"):
        assert getattr(after, name) == getattr(before, name)
    assert after.seq == before.seq + 1


def test_a_note_that_cannot_be_stored_is_refused(store):
    with store.run("r", "w") as run:
        with pytest.raises(keepstep.CannotStore, match="note"):
            run.note({"client": object()})
        run.note("fine")

    with pytest.raises(keepstep.CannotStore, match="note"):
        store.note("r", object())
    assert store.look("r").note == "fine"


def test_a_note_too_large_is_refused(place):
    store = place.open(limits=keepstep.Limits(body_bytes=1000))
    store.save("r", {}, workflow="w")

    with pytest.raises(keepstep.TooLarge, match="note"):
        store.note("r", "x" * 2000)

    assert store.look("r").note is None
