"""Deleting a run erases it; a tombstone keeps late writers out, and the id may live again."""

import pytest

import keepstep


def test_a_deleted_run_is_gone_everywhere(store):
    with store.run("r", "w") as run:
        run.tag(customer="ada")
        run.save({"text": "x" * 1000}, label="first")
    store.fork("r", id="r-b")

    assert store.delete("r") is True

    assert store.load("r") is None
    for read in (store.look, store.history, store.at, store.verify, store.size, store.claim):
        with pytest.raises(keepstep.NoSuchRun):
            read("r")
    assert [one.run_id for one in store.runs().items] == ["r-b"]
    assert [one.run_id for one in store.runs(tags={"customer": "ada"}).items] == ["r-b"]
    assert [one.run_id for one in store.due().items] == ["r-b"]
    assert store.size().records == store.look("r-b").seq


def test_deleting_twice_is_fine(store):
    store.save("r", {}, workflow="w")

    assert [store.delete("r"), store.delete("r"), store.delete("unknown")] == [True, False, False]


def test_nothing_is_left_of_a_store_whose_runs_are_deleted(store):
    for number in range(3):
        store.save(f"r{number}", {"text": "x" * 100}, label="a", workflow="w")
        store.delete(f"r{number}")

    size = store.size()
    assert (size.runs, size.records, size.heads, size.bodies) == (0, 0, 0, 0)


@pytest.mark.parametrize("end", [lambda run: run.finish(1), lambda run: run.close()])
def test_an_ended_run_is_deleted(store, end):
    end(store.claim("r", "w"))

    assert store.delete("r")


# --- held ------------------------------------------------------------------------------------------------------------


def test_a_held_run_is_not_deleted(place):
    holder, other = place.open(), place.open()
    run = holder.claim("r", "w")

    for store in (holder, other):
        with pytest.raises(keepstep.RunHeld) as caught:
            store.delete("r")
        assert caught.value.owner == holder.look("r").holder.owner
    run.save([1])


def test_force_deletes_a_held_run_and_its_holder_is_told(place):
    holder, other = place.open(), place.open()
    run = holder.claim("r", "w")
    run.save([1])

    assert other.delete("r", force=True)

    with pytest.raises(keepstep.RunGone) as caught:
        run.save([2])
    assert caught.value.run_id == "r"
    assert not run.is_open
    for verb in (lambda: run.finish(), lambda: run.note("x")):  # noqa: PLW0108 - both are calls
        with pytest.raises(keepstep.RunGone):
            verb()
    run.close()
    assert other.load("r") is None


def test_a_dead_owners_run_is_deleted_without_force(place):
    dead, store = place.open(), place.open()
    dead.claim("r", "w")
    place.kill(dead)

    assert store.delete("r")


def test_a_frozen_owner_cannot_bring_its_run_back(place):
    frozen, store = place.open(), place.open()
    run = frozen.claim("r", "w")
    place.freeze(frozen)
    store.delete("r")

    with pytest.raises(keepstep.RunGone):
        run.save([1])

    assert store.load("r") is None


# --- again -----------------------------------------------------------------------------------------------------------


def test_the_id_may_live_again(store):
    with store.run("r", "old") as run:
        run.save({"n": 1}, label="first")
        run.tag(customer="ada")
    store.delete("r")

    with store.run("r", "new") as run:
        assert (run.state, run.step, run.tags, run.workflow) == (None, None, {}, "new")
        run.save({"n": 2})

    look = store.look("r")
    assert (look.incarnation, look.epoch, look.step) == (2, 2, 1)
    with pytest.raises(keepstep.NoSuchCheckpoint):
        store.at("r", label="first")
    assert store.verify("r").ok


def test_epochs_and_incarnations_go_on_through_every_life(store):
    seen = []
    for _ in range(3):
        with store.run("r", "w") as run:
            epoch = run.epoch
        seen.append((store.look("r").incarnation, epoch))
        store.delete("r")

    assert seen == [(1, 1), (2, 2), (3, 3)]


def test_a_late_writer_does_not_meet_the_next_life(place):
    frozen, store = place.open(), place.open()
    run = frozen.claim("r", "w")
    run.save(["old"])
    place.freeze(frozen)
    store.delete("r")
    with store.run("r", "w") as reborn:
        reborn.save(["new"])

        with pytest.raises(keepstep.RunGone):
            run.save(["late"])

    assert store.load("r").state == ["new"]


def test_a_plain_save_does_not_build_on_a_life_that_ended(place):
    one, two = place.open(), place.open()
    for number in range(3):
        one.save("r", {"text": "words " * 200, "n": number}, workflow="w")
    two.delete("r")

    with pytest.raises(keepstep.NoSuchRun):
        one.save("r", {"text": "words " * 200, "n": 3})
    one.save("r", {"text": "words " * 200, "n": 4}, workflow="w")
    two.delete("r")
    two.save("r", {"text": "other " * 200, "n": 0}, workflow="w")
    one.save("r", {"text": "other " * 200, "n": 1})

    assert two.load("r").state == {"text": "other " * 200, "n": 1}
    assert two.load("r").step == 2
    assert two.look("r").incarnation == 3
    assert two.verify("r").ok


def test_a_digest_kept_from_an_earlier_life_is_of_another_log(store):
    store.save("r", {"n": 1}, workflow="w")
    kept = store.look("r").digest
    store.delete("r")
    store.save("r", {"n": 1}, workflow="w")

    assert not store.verify("r", expect=kept).ok
