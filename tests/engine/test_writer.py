"""The pending tail of a run: whatever comes between, nothing of it is lost, doubled, or out of order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import keepstep
from keepstep.errors import BadInput, ClaimLost, NotAllowed, RunGone, StoreFailed, StoreFull
from keepstep.log.records import Began, Returned, Sent
from keepstep.store.base import Entry
from tests.engine.hooked_store import HookedStore, Work, heads, kinds, lose_reply, refuse, until
from tests.places import Place

Store = keepstep.Store
CLAIM = ["opened", "claimed"]


def states(store: Store, run_id: str) -> list[Any]:
    """The states of all checkpoints, oldest first; each can be read."""
    lines = store.history(run_id, newest_first=False, limit=1000).items
    return [store.at(run_id, seq=one.seq).state for one in lines]


def pending_of(run: Any) -> int:
    """How many appends wait for the commit under way."""
    return len(run._claim.writer._pending)


# --- what comes in between -------------------------------------------------------------------------------------------


def test_a_tag_a_note_and_a_message_come_between_and_nothing_is_lost(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    def between(batch: Sequence[Entry]) -> None:
        other.tag("r", customer="ada")
        other.note("r", "hurry up")
        place.append(other, "r", Sent(name="paid"))

    with holder.run("r", "w") as run:
        run.save({"n": 1})
        hooked.before(between)
        assert run.save({"n": 2}) == 2
        assert run.tags == {"customer": "ada"}
    foreign = ["tagged", "noted", "sent"]
    assert kinds(place, "r") == [*CLAIM, "saved", *foreign, "saved", "released"]
    assert states(other, "r") == [{"n": 1}, {"n": 2}]
    look = other.look("r")
    assert (look.tags, look.note, look.step) == ({"customer": "ada"}, "hurry up", 2)
    assert other.verify("r").ok


def test_a_request_to_cancel_that_comes_between_fails_all_that_is_pending_but_outcomes(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    work = Work()
    with holder.run("r", "w") as run:
        run.save({"n": 1})
        held = hooked.hold()
        work.start(lambda: run.note("mine"))
        held.arrived()
        calls = (
            lambda: run.save({"n": 2}),
            lambda: place.hold_write(holder, run, Began(key=b"k" * 16, tool="charge")),
            lambda: place.hold_write(holder, run, Returned(key=b"m" * 16, tool="model")),
            lambda: run.tag(x=1),
        )
        for number, call in enumerate(calls):
            work.start(call)
            until(lambda number=number: pending_of(run) == number + 1)
        other.cancel("r", by="ada")
        held.let_go()
        *refused, returned, tagged = work.ended()
        assert returned is None
        assert all(isinstance(one, keepstep.Cancelled) for one in (*refused, tagged))
        assert run.state == {"n": 1}
    assert kinds(place, "r") == [*CLAIM, "saved", "cancel_requested", "returned", "cancelled"]
    assert states(other, "r") == [{"n": 1}]
    assert other.verify("r").ok


def test_a_finish_that_was_pending_is_stronger_than_a_request(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    with holder.run("r", "w") as run:
        hooked.before(lambda batch: other.cancel("r"))
        run.finish("done")
    assert kinds(place, "r") == [*CLAIM, "cancel_requested", "finished"]
    assert (other.look("r").result, run.cancelled) == ("done", False)


def test_after_a_heartbeat_the_row_is_read_once(place: Place, hooked: HookedStore, holder: Store, other: Store):
    run = holder.claim("r", "w")
    other.tag("r", x=1)
    place.beat(holder)
    before = hooked.views
    run.gather()
    run.gather()
    assert hooked.views == before + 1
    assert run.tags == {"x": 1}


def test_what_is_written_while_the_row_is_read_is_not_lost(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    run = holder.claim("r", "w")
    other.tag("r", x=1)
    place.beat(holder)
    hooked.before_view(lambda: other.tag("r", y=2))
    run.gather()
    assert run.save({"n": 1}) == 1
    assert run.tags == {"x": 1, "y": 2}
    assert other.verify("r").ok


def test_everything_that_was_pending_is_decided_again_in_order(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    work = Work()
    with holder.run("r", "w") as run:
        held = hooked.hold()
        hooked.before(lambda batch: other.note("r", "again between"))
        work.start(lambda: run.save({"n": 1}))
        held.arrived()
        for number, call in enumerate(
            (
                lambda: run.save({"n": 2}, label="two"),
                lambda: run.note("mine"),
                lambda: run.tag(x=1),
                lambda: run.save({"n": 3}),
            )
        ):
            work.start(call)
            until(lambda number=number: pending_of(run) == number + 1)
        other.tag("r", customer="ada")
        held.let_go()
        assert work.ended() == [1, 2, None, None, 3]
    assert kinds(place, "r") == [
        *CLAIM, "tagged", "noted", "saved", "saved", "noted", "tagged", "saved", "released",
    ]  # fmt: skip
    assert states(other, "r") == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert other.at("r", label="two").step == 2
    assert other.verify("r").ok


def test_a_conflict_on_every_single_try_is_only_slow(place: Place, hooked: HookedStore, holder: Store, other: Store):
    with holder.run("r", "w") as run:
        hooked.before(*[lambda batch: other.note("r", "between")] * 20)
        assert run.save({"n": 1}) == 1
    assert kinds(place, "r") == [*CLAIM, *["noted"] * 20, "saved", "released"]


def test_what_is_refused_when_decided_again_fails_alone(place: Place, hooked: HookedStore, other: Store):
    work = Work()
    holder = place.open(hooked, limits=keepstep.Limits(tags=2))  # pyright: ignore[reportArgumentType]
    with holder.run("r", "w") as run:
        held = hooked.hold()
        work.start(lambda: run.note("first"))
        held.arrived()
        work.start(lambda: run.tag(x=1))
        until(lambda: pending_of(run) == 1)
        work.start(lambda: run.save({"n": 1}))
        until(lambda: pending_of(run) == 2)
        other.tag("r", a=1, b=2)
        held.let_go()
        first, tagged, saved = work.ended()
        assert (first, saved) == (None, 1)
        assert isinstance(tagged, BadInput)
        assert "3 tags" in str(tagged)
    assert kinds(place, "r") == [*CLAIM, "tagged", "noted", "saved", "released"]


def test_what_is_refused_at_once_leaves_the_others_as_they_were(place: Place, hooked: HookedStore, holder: Store):
    work = Work()
    with holder.run("r", "w") as run:
        run.save({"n": 5}, step=5)
        held = hooked.hold()
        work.start(lambda: run.note("first"))
        held.arrived()
        with pytest.raises(NotAllowed, match="cannot follow step 5"):
            run.save({"n": 4}, step=4)
        work.start(lambda: run.save({"n": 6}))
        until(lambda: pending_of(run) == 1)
        held.let_go()
        assert work.ended() == [None, 6]
    assert states(holder, "r") == [{"n": 5}, {"n": 6}]
    assert holder.verify("r").ok


# --- replies that are lost -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [StoreFailed("lost"), OSError("lost"), RuntimeError("lost")])
def test_what_was_written_is_found_by_its_batch_when_the_reply_is_lost(
    place: Place, hooked: HookedStore, holder: Store, error: Exception
):
    def lose(batch: Any, outcomes: Any) -> None:
        raise error

    with holder.run("r", "w") as run:
        hooked.after(lose, lose)
        assert run.save({"n": 1}) == 1
        run.note("hello")
        assert run.save({"n": 2}) == 2
    assert kinds(place, "r") == [*CLAIM, "saved", "noted", "saved", "released"]
    assert states(holder, "r") == [{"n": 1}, {"n": 2}]


def test_what_was_written_is_found_behind_what_others_wrote_since(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    with holder.run("r", "w") as run:
        hooked.after(lose_reply)
        hooked.before_view(lambda: other.note("r", "since then"))
        assert run.save({"n": 1}) == 1
        assert run.save({"n": 2}) == 2
    assert kinds(place, "r") == [*CLAIM, "saved", "noted", "saved", "released"]


def test_what_waited_behind_a_lost_reply_is_written_once(place: Place, hooked: HookedStore, holder: Store):
    work = Work()
    with holder.run("r", "w") as run:
        held = hooked.hold()

        def lose_it(batch: Any, outcomes: Any) -> None:
            raise OSError("lost")

        hooked.after(lose_it)
        work.start(lambda: run.save({"n": 1}))
        held.arrived()
        work.start(lambda: run.note("behind"))
        until(lambda: pending_of(run) == 1)
        held.let_go()
        assert work.ended() == [1, None]
    assert kinds(place, "r") == [*CLAIM, "saved", "noted", "released"]


@pytest.mark.parametrize("error", [StoreFailed("no"), StoreFull("no")])
def test_what_was_not_written_is_told_and_the_next_save_stands_on_the_one_before(
    place: Place, hooked: HookedStore, holder: Store, error: keepstep.StoreError
):
    def fail(batch: Any) -> None:
        raise error

    with holder.run("r", "w") as run:
        run.save({"n": 1, "text": "x" * 2000})
        hooked.before(fail)
        with pytest.raises(type(error)):
            run.save({"n": 2, "text": "y" * 2000})
        assert run.step == 1
        assert run.save({"n": 3, "text": "x" * 2000}) == 2
    assert [one["n"] for one in states(holder, "r")] == [1, 3]
    assert holder.verify("r").ok


def test_a_failure_with_others_waiting_leaves_no_step_out(place: Place, hooked: HookedStore, holder: Store):
    work = Work()
    with holder.run("r", "w") as run:
        held = hooked.hold()
        held_then_refused = hooked._before.pop()
        hooked.before(lambda batch: (held_then_refused(batch), refuse(batch)))
        work.start(lambda: run.save({"n": 1}))
        held.arrived()
        work.start(lambda: run.save({"n": 2}))
        until(lambda: pending_of(run) == 1)
        held.let_go()
        ended = work.ended()
        told = [one for one in ended if isinstance(one, StoreFailed)]
        kept = [one for one in ended if isinstance(one, int)]
        assert len(told) + len(kept) == 2
        assert told
        assert run.save({"n": 3}) == len(kept) + 1
    assert [one["n"] for one in states(holder, "r")][-1] == 3
    assert holder.verify("r").ok


def test_when_nobody_can_tell_the_next_save_finds_out(place: Place, hooked: HookedStore, holder: Store):
    def cannot_read() -> None:
        raise StoreFailed("no reading either")

    with holder.run("r", "w") as run:
        run.save({"n": 1, "text": "x" * 2000})
        hooked.after(lose_reply)
        hooked.before_view(cannot_read)
        with pytest.raises(StoreFailed, match="no reading either"):
            run.save({"n": 2, "text": "y" * 2000})
        assert run.save({"n": 3, "text": "x" * 2000}) == 3  # the second was written after all
    assert [one["n"] for one in states(holder, "r")] == [1, 2, 3]
    assert holder.verify("r").ok


# --- claims that are lost --------------------------------------------------------------------------------------------


def test_a_writer_whose_claim_was_taken_over_writes_nothing_more(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    run = holder.claim("r", "w")
    run.save({"n": 1})
    place.freeze(holder)
    successor = other.claim("r")
    for act in (lambda: run.save({"n": 99}), lambda: run.note("late"), lambda: run.tag(late=True), run.finish):
        with pytest.raises(ClaimLost, match="claimed it"):
            act()
    assert not run.is_open
    run.close()
    successor.save({"n": 2})
    successor.finish("done")
    assert kinds(place, "r") == [*CLAIM, "saved", "claimed", "saved", "finished"]
    assert other.look("r").result == "done"


def test_everything_pending_fails_when_the_claim_is_lost(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    work = Work()
    run = holder.claim("r", "w")
    held = hooked.hold()
    work.start(lambda: run.save({"n": 1}))
    held.arrived()
    work.start(lambda: run.note("x"))
    until(lambda: pending_of(run) == 1)
    place.freeze(holder)
    successor = other.claim("r")
    held.let_go()
    assert [type(one) for one in work.ended()] == [ClaimLost, ClaimLost]
    assert kinds(place, "r") == [*CLAIM, "claimed"]
    successor.save({"n": 1})
    successor.close()


def test_a_claim_stays_lost_when_the_successor_has_left(place: Place, holder: Store, other: Store):
    run = holder.claim("r", "w")
    place.freeze(holder)
    with other.run("r") as successor:
        successor.save({"n": 1})
    with pytest.raises(ClaimLost, match="is ready now"):
        run.save({"n": 99})
    assert other.load("r").state == {"n": 1}  # pyright: ignore[reportOptionalMemberAccess]


def test_a_claim_is_lost_to_a_claimless_save_as_well(place: Place, holder: Store, other: Store):
    run = holder.claim("r", "w")
    run.save({"n": 1})
    place.freeze(holder)
    assert other.save("r", {"n": 2}) == 2
    with pytest.raises(ClaimLost, match="taken away"):
        run.save({"n": 99})
    assert kinds(place, "r") == [*CLAIM, "saved", "released", "saved"]


def test_a_writer_that_lost_its_claim_can_enter_again(place: Place, holder: Store, other: Store):
    run = holder.claim("r", "w")
    place.freeze(holder)
    with other.run("r") as successor:
        successor.save({"n": 1})
    with pytest.raises(ClaimLost):
        run.save({"n": 99})
    with holder.run("r") as again:
        assert again.state == {"n": 1}
        assert again.save({"n": 2}) == 2


def test_a_late_writer_does_not_harm_its_own_owners_next_claim(place: Place, holder: Store, other: Store):
    late = holder.claim("r", "w")
    place.freeze(holder)
    other.claim("r").close()
    again = holder.claim("r")
    with pytest.raises(ClaimLost):
        late.save({"n": 99})
    late.close()
    assert again.save({"n": 1}) == 1
    again.close()
    assert other.look("r").status == "ready"


# --- runs that are gone ----------------------------------------------------------------------------------------------


def test_a_deleted_run_cannot_be_written(place: Place, holder: Store, other: Store):
    run = holder.claim("r", "w")
    run.save({"n": 1})
    assert other.delete("r", force=True)
    with pytest.raises(RunGone):
        run.save({"n": 2})
    with pytest.raises(RunGone):
        run.note("late")
    run.close()
    assert other.load("r") is None
    assert kinds(place, "r") == []


def test_the_next_life_of_an_id_is_not_written_by_a_writer_of_the_last(place: Place, holder: Store, other: Store):
    run = holder.claim("r", "w")
    run.save({"n": 1})
    other.delete("r", force=True)
    other.save("r", {"life": 2}, workflow="w")
    with pytest.raises(RunGone):
        run.save({"n": 2})
    assert other.load("r").state == {"life": 2}  # pyright: ignore[reportOptionalMemberAccess]
    assert other.look("r").incarnation == 2


def test_pending_appends_fail_when_the_run_is_deleted(place: Place, hooked: HookedStore, holder: Store, other: Store):
    work = Work()
    run = holder.claim("r", "w")
    held = hooked.hold()
    work.start(lambda: run.save({"n": 1}))
    held.arrived()
    work.start(lambda: run.note("x"))
    until(lambda: pending_of(run) == 1)
    other.delete("r", force=True)
    held.let_go()
    assert [type(one) for one in work.ended()] == [RunGone, RunGone]


# --- many at once ----------------------------------------------------------------------------------------------------


def test_many_appends_of_one_run_share_a_commit(place: Place, hooked: HookedStore, holder: Store):
    work = Work()
    with holder.run("r", "w") as run:
        held = hooked.hold()
        before = len(hooked.commits)
        work.start(lambda: run.note(0))
        held.arrived()
        work.start(*[lambda number=number: run.note(number) for number in range(1, 64)])
        until(lambda: pending_of(run) == 63)
        held.let_go()
        assert work.ended() == [None] * 64
        assert len(hooked.commits) - before == 2
    assert kinds(place, "r").count("noted") == 64
    assert holder.verify("r").ok


def test_appends_are_written_in_the_order_in_which_they_were_made(place: Place, hooked: HookedStore, holder: Store):
    work = Work()
    with holder.run("r", "w") as run:
        held = hooked.hold()
        work.start(lambda: run.tag(n=0))
        held.arrived()
        for number in range(1, 12):
            work.start(lambda number=number: run.tag(n=number))
            until(lambda number=number: pending_of(run) == number)
        held.let_go()
        work.ended()
    assert [head.tags["n"] for head in heads(place, "r") if head.kind == "tagged"] == list(range(12))


def test_saves_from_many_threads_each_get_their_step_and_keep_their_state(place: Place, holder: Store, other: Store):
    work = Work()
    with holder.run("r", "w") as run:

        def save(number: int) -> int:
            return run.save({"number": number, "text": "same " * 50})

        work.start(*[lambda number=number: save(number) for number in range(24)])
        steps = work.ended()
    assert sorted(steps) == list(range(1, 25))
    assert [other.at("r", step=step).state["number"] for step in steps] == list(range(24))
    assert other.verify("r").ok


def test_strangers_and_the_holder_write_one_run_at_once(place: Place, holder: Store, other: Store):
    work = Work()
    with holder.run("r", "w") as run:
        work.start(*[lambda number=number: run.save({"n": number}) for number in range(10)])
        work.start(*[lambda number=number: other.note("r", number) for number in range(10)])
        work.start(*[lambda number=number: other.tag("r", {f"t{number}": number}) for number in range(10)])
        outcomes = work.ended()
    assert sorted(outcomes[:10]) == list(range(1, 11))
    assert outcomes[10:] == [None] * 20
    found = kinds(place, "r")
    assert (found.count("saved"), found.count("noted"), found.count("tagged")) == (10, 10, 10)
    assert other.look("r").tags == {f"t{number}": number for number in range(10)}
    assert other.verify("r").ok


# --- what heartbeats tell --------------------------------------------------------------------------------------------


def test_a_heartbeat_that_saw_foreign_records_saves_the_next_append_a_conflict(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    with holder.run("r", "w") as run:
        other.tag("r", customer="ada")
        place.beat(holder)
        before = len(hooked.commits)
        run.save({"n": 1})
        assert len(hooked.commits) - before == 1
        assert run.tags == {"customer": "ada"}


def test_a_heartbeat_that_saw_nothing_new_costs_nothing(place: Place, hooked: HookedStore, holder: Store):
    with holder.run("r", "w") as run:
        run.save({"n": 1})
        place.beat(holder)
        before = hooked.views
        run.save({"n": 2})
        assert hooked.views == before


def test_a_heartbeat_that_lost_the_run_keeps_the_next_append_from_being_tried(
    place: Place, hooked: HookedStore, holder: Store, other: Store
):
    run = holder.claim("r", "w")
    place.freeze(holder)
    successor = other.claim("r")
    place.beat(holder)
    before = len(hooked.commits)
    with pytest.raises(ClaimLost):
        run.save({"n": 1})
    assert len(hooked.commits) == before
    successor.close()


def test_a_heartbeat_in_the_middle_of_a_commit_harms_nothing(place: Place, hooked: HookedStore, holder: Store):
    with holder.run("r", "w") as run:
        hooked.after(lambda batch, outcomes: place.beat(holder))
        assert run.save({"n": 1}) == 1
        assert run.save({"n": 2}) == 2
    assert kinds(place, "r") == [*CLAIM, "saved", "saved", "released"]
