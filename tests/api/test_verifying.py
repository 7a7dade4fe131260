"""Verifying a run that is whole, whatever it has been through, and comparing it with a digest kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import keepstep
from keepstep.codec.framer import DELTAS_MAX
from keepstep.log.chain import genesis
from tests.damage import rewrite, rewrite_row
from tests.places import Place

LONG = 2 * (DELTAS_MAX + 1) + 20
"""Checkpoints that need key, segment and delta frames, and more than one read."""


def sound(store: keepstep.Store, run_id: str, saved: int | None) -> keepstep.Verification:
    """A report without complaints; `saved` is the seq of the newest checkpoint."""
    report = store.verify(run_id)
    look = store.look(run_id)
    assert report.ok
    assert (report.run_id, report.damage, report.last_good) == (run_id, [], saved)
    assert (report.records, report.digest) == (look.seq, look.digest)
    return report


def test_a_run_that_was_only_claimed_is_sound(store):
    run = store.claim("r", "w")
    assert sound(store, "r", None).records == 2
    run.close()
    assert sound(store, "r", None).records == 3


def fail(store: Any) -> None:
    def work(run: Any) -> None:
        raise OSError("the tool broke")

    assert store.carry(work, "r", "w").status == "failed"


ENDS: dict[str, Callable[[Any], object]] = {
    "left": lambda store: store.claim("r", "w").close(),
    "finished": lambda store: store.claim("r", "w").finish({"answer": 42}),
    "failed": fail,
    "failed and entered again": lambda store: (fail(store), store.claim("r").close()),
    "tagged, noted": lambda store: (store.tag("r", customer="ada"), store.note("r", {"1 of": 7})),
    "saved as something else": lambda store: store.save("r", ["not", "a", "dict"]),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_run_is_sound_however_it_was_left(store, end):
    for number in range(3):
        store.save("r", {"n": number}, workflow="w", label=f"step {number}")
    ENDS[end](store)

    sound(store, "r", store.at("r").seq)


def test_a_held_run_is_sound_after_every_save(place):
    holder, other = place.open(), place.open()
    run = holder.claim("r", "w")
    for number in range(3):
        run.save({"n": number})
        sound(other, "r", 3 + number)


def test_a_run_that_was_taken_over_is_sound(place):
    first, second = place.open(), place.open()
    late = first.claim("r", "w")
    late.save({"n": 1})
    place.freeze(first)
    with second.run("r") as run:
        run.save({"n": 2})
    with pytest.raises(keepstep.ClaimLost):
        late.save({"n": 3})

    sound(second, "r", second.at("r").seq)


def test_a_long_run_in_frames_of_every_kind_is_sound(store):
    log: list[str] = []
    with store.run("r", "w") as run:
        for number in range(LONG):
            log.append(f"message {number}, as long as a sentence is")
            run.save({"log": log, "n": number})

    assert sound(store, "r", 2 + LONG).records == LONG + 3
    assert store.at("r", seq=2 + LONG).state == {"log": log, "n": LONG - 1}


def test_a_fork_is_sound_and_so_is_its_parent(store):
    for number in range(3):
        store.save("r", {"n": number, "text": "x" * 200}, workflow="w")
    store.tag("r", customer="ada")

    look = store.fork("r", 2, {"n": 20}, id="r-b")
    store.save("r-b", {"n": 21, "text": "x" * 200})

    assert look.parent.run_id == "r"
    sound(store, "r", 4)
    sound(store, "r-b", store.at("r-b").seq)


def test_a_run_that_lives_again_is_sound_and_has_nothing_of_its_life_before(store):
    store.save("r", {"life": 1}, workflow="w", label="l")
    before = store.look("r").digest
    store.delete("r")
    store.save("r", {"life": 2}, workflow="another")

    sound(store, "r", 2)
    report = store.verify("r", expect=before)

    assert not report.ok
    assert [(one.seq, "another log" in one.what) for one in report.damage] == [(0, True)]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_run_that_is_not_there_cannot_be_verified(store, deleted):
    store.save("report-1", {}, workflow="w")
    if deleted:
        store.save("report-2", {}, workflow="w")
        store.delete("report-2")

    with pytest.raises(keepstep.NoSuchRun) as caught:
        store.verify("report-2")
    assert caught.value.near == ("report-1",)


def test_a_store_opened_for_reading_verifies(shared_place):
    store = shared_place.open()
    store.save("r", {"n": 1}, workflow="w")
    store.close()

    sound(shared_place.open(read_only=True), "r", 2)


# --- a digest kept elsewhere -----------------------------------------------------------------------------------------


def test_every_digest_that_the_run_ever_had_is_in_its_chain(store):
    digests: list[str] = []
    for number in range(3):
        store.save("r", {"n": number}, workflow="w")
        digests.append(store.look("r").digest)
    store.note("r", "one more")

    assert [store.verify("r", expect=digest).ok for digest in digests] == [True] * 3


def test_a_digest_is_compared_whatever_its_letters(store):
    store.save("r", {"n": 1}, workflow="w")

    assert store.verify("r", expect=store.look("r").digest.upper()).ok


def test_a_digest_of_no_record_is_told(store):
    store.save("r", {"n": 1}, workflow="w")
    for digest in ("0" * 32, genesis("r").hex()):
        report = store.verify("r", expect=digest)

        assert [(one.seq, digest in one.what) for one in report.damage] == [(0, True)]
        assert report.last_good == 2


def test_a_log_that_was_cut_back_with_its_row_is_told_by_a_digest_alone(place: Place):
    store: Any = place.open()
    store.save("r", {"n": 1}, workflow="w")
    earlier, kept = row_of(place, store), store.look("r").digest
    store.save("r", {"n": 2})
    last = store.look("r").digest

    rewrite(place, store, "r", lambda records: {seq: one for seq, one in records.items() if seq <= 2})
    if place.kind != "dir":  # there the row went with its line
        rewrite_row(place, store, "r", lambda row: earlier)
    again = place.open() if place.kind != "memory" else store

    assert again.verify("r").ok
    assert again.verify("r", expect=kept).ok
    assert [one.seq for one in again.verify("r", expect=last).damage] == [0]


def row_of(place: Place, store: Any) -> Any:
    found: list[Any] = []
    rewrite_row(place, store, "r", lambda row: (found.append(row), row)[1])
    return found[0]
