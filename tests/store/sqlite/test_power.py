"""What a save returned for is there after a loss of power; what was on its way is there whole or not at all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from random import Random
from typing import Any

import apsw
import pytest

import keepstep
from keepstep.store.sqlite import SqliteStore
from tests.crash.plain_model import Kept, Model, picture
from tests.crash.scenarios import LONG, SCENARIOS
from tests.crash.scripts import Delete, Enter, Finish, Leave, Note, Put, Save, Step, Tag, World
from tests.handles import LOOP
from tests.store.sqlite.power_story import (
    NIGHT_SECONDS,
    Allowed,
    Hurry,
    Reopen,
    allowing,
    differences,
    mornings,
    play,
    power_place,
    some,
    wrong_after_losses,
    wrong_in_the_morning,
)
from tests.store.sqlite.power_vfs import Created, Deleted, Disk, FolderSynced, Recording, Synced, Wrote

LIVES = 4
"""Processes of one story, one after another; fewer than nights."""
NOISE = Random(0).randbytes(20_000)
"""Takes as many bytes in the store as here: nothing makes it smaller."""


# --- at every moment -------------------------------------------------------------------------------------------------

SHORT: list[Step] = [
    Save("pair", {"n": 1, "text": LONG}, "tool", 3),
    Enter("run"),
    Put("run", {"n": 1}, "plan"),
    Put("run", {"n": 2, "noise": NOISE}, "plan", label="middle"),
    Tag("run", {"customer": "ada"}),
    Put("run", {"n": 3, "noise": None}),
    Leave("run"),
    Reopen(),
    Save("pair", {"n": 2, "text": LONG}),
    Delete("pair"),
    Enter("run"),
    Note("run", "nearly"),
    Finish("run", {"answer": 42}),
    Reopen(),
    Save("pair", {"n": 1}),
]
"""Small and large states, both ends of a run, and the log taken over into the file twice."""

SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 12))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loss_at_any_moment_takes_nothing_that_was_saved(seed, folder):
    with power_place(folder / "day") as place:
        play(place.recording, World(place), SHORT)

    assert wrong_after_losses(place.recording, Random(seed), folder / "morning") == []


@pytest.mark.parametrize("seed", range(5))
def test_a_place_where_the_power_went_while_the_store_was_made_can_be_opened(seed, folder):
    with power_place(folder / "day") as place:
        place.open().close()

    assert wrong_after_losses(place.recording, Random(seed), folder / "morning") == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_scenario_loses_anything_with_the_power(scenario, seed, folder):
    chance = Random(seed)
    with power_place(folder / "day") as place:
        play(place.recording, World(place), SCENARIOS[scenario])

    moments = some(chance, 0, len(place.recording.events), 20)
    assert wrong_after_losses(place.recording, chance, folder / "morning", moments) == []


# --- while the log is taken over into the file -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loss_while_a_commit_takes_the_log_over_loses_nothing(seed, folder):
    chance = Random(seed)
    with power_place(folder / "day") as place:
        world = World(place)
        world.store("a")
        made = len(place.recording.events)
        play(place.recording, world, [Save("r", {"n": n, "noise": chance.randbytes(200_000)}) for n in range(16)])

    events = place.recording.events
    file = place.recording.number(place.path.name)
    taken_over = [at for at in range(made, len(events)) if isinstance(one := events[at], Wrote) and one.number == file]
    assert taken_over, "the log never became long enough"
    # The last moments are those in which the log, taken over, is written anew from its beginning.
    during = some(chance, taken_over[0], taken_over[-1] + 2, 12)
    afterwards = some(chance, taken_over[-1] + 3, len(events), 12)
    assert wrong_after_losses(place.recording, chance, folder / "morning", during | afterwards) == []


# --- group commits ---------------------------------------------------------------------------------------------------


def busy(run_id: str) -> list[Step]:
    return [Enter(run_id), *(Put(run_id, {"n": n, "text": LONG}) for n in range(4)), Finish(run_id, run_id)]


def test_saves_of_many_threads_survive_each_for_itself(folder):
    chance = Random(0)
    failed: list[BaseException] = []

    def work(run_id: str) -> None:
        try:
            start.wait()
            play(place.recording, world, busy(run_id))
        except BaseException as error:
            failed.append(error)

    with power_place(folder / "day") as place:
        world = World(place)
        world.store("a")
        threads = [threading.Thread(target=work, args=(f"r{n}",)) for n in range(6)]
        start = threading.Barrier(len(threads))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []

    moments = some(chance, 0, len(place.recording.events), 60)
    assert wrong_after_losses(place.recording, chance, folder / "morning", moments) == []


class Counting(SqliteStore):
    """Counts what is committed together."""

    def __init__(self, *how: Any, **more: Any) -> None:
        super().__init__(*how, **more)
        self.most = 0

    async def commit(self, batch: Any) -> Any:
        self.most = max(self.most, len(batch))
        return await super().commit(batch)


def test_saves_that_share_a_commit_survive_each_for_itself(folder):
    chance = Random(0)

    async def work(store: keepstep.AsyncStore, run_id: str) -> None:
        model = Model()
        for number in range(4):
            after = list(Save(run_id, {"n": number}).after(model.copy()))[-1]
            place.recording.note(allowing(model, after))
            await store.save(run_id, {"n": number}, workflow="w")
            model = after
            place.recording.note(allowing(model))

    async def day(base: SqliteStore) -> None:
        async with keepstep.open_async(base, clock=place.clock) as store:
            await asyncio.gather(*(work(store, f"r{number}") for number in range(8)))

    with power_place(folder / "day") as place:
        base = Counting(str(place.path), place.clock, vfs=place.vfs.name)
        LOOP.run(day(base))
    assert base.most > 1

    moments = some(chance, 0, len(place.recording.events), 60)
    assert wrong_after_losses(place.recording, chance, folder / "morning", moments) == []


# --- kills and losses, one after another -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [*range(25), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(25, 400))])
def test_lives_that_end_in_kills_and_losses_lose_nothing(seed, folder):
    chance = Random(seed)
    disk, allowed = Disk(), Allowed()
    for life in range(LIVES):
        with power_place(folder / f"life {life}", disk) as place:
            place.clock.turn(NIGHT_SECONDS * life)
            place.recording.note(allowed)
            world = World(place)
            found = picture(world.store("a"))
            assert differences(found, allowed) == []
            model = Model(found, lives(found, allowed))
            play(place.recording, world, random_script(chance, model), model, allowed)
        disk, allowed = a_moment(place.recording, chance)
        if chance.random() < 0.5:  # otherwise the process was killed, and the next one sees what it wrote
            disk = Disk(disk.after_loss(chance))
    assert wrong_in_the_morning(disk.after_loss(chance), allowed, folder / "morning") == []


def a_moment(recording: Recording, chance: Random) -> tuple[Disk, Allowed]:
    end = chance.randint(1, len(recording.events))  # the first event is the note of what the life began with
    return next((disk.copy(), allowed) for at, disk, allowed in mornings(recording) if at == end)


def lives(found: dict[str, Kept], allowed: Allowed) -> dict[str, int]:
    """How many lives each run has had, as it was found."""
    return {name: next(count for kept, count in these if kept == found.get(name)) for name, these in allowed.items()}


def random_script(chance: Random, model: Model) -> list[Step]:
    script: list[Step] = []
    for _ in range(8):
        script.append(random_step(chance, model))
        model = list(script[-1].after(model.copy()))[-1]
    return script


def random_step(chance: Random, model: Model) -> Step:
    """Something that is allowed now."""
    name = chance.choice(("a", "b"))
    kept = model.runs.get(name)
    state = {
        "n": chance.random(),
        "text": LONG[: chance.randrange(len(LONG))],
        "noise": NOISE[: chance.choice((0, 9000))],
    }
    return chance.choice(_possible(name, kept, state, all(run.status != "running" for run in model.runs.values())))


def _possible(name: str, kept: Kept | None, state: dict[str, Any], all_free: bool) -> list[Step]:
    if kept is not None and kept.status == "running":
        return [
            Put(name, state),
            Put(name, state, label="l"),
            Tag(name, {"t": state["n"]}),
            Leave(name),
            Finish(name, 1),
        ]
    reopen: list[Step] = [Reopen()] if all_free else []
    if kept is None:
        return [Save(name, state), Enter(name), *reopen]
    if kept.status == "finished":
        return [Delete(name), *reopen]
    return [Save(name, state), Save(name, state, step=(kept.step or 0) + 5), Enter(name), Delete(name), *reopen]


# --- what is not waited for ------------------------------------------------------------------------------------------


def synced_in(recording: Recording, work: Callable[[], object]) -> int:
    before = len(recording.events)
    work()
    return sum(isinstance(event, Synced) for event in recording.events[before:])


def test_only_giving_a_claim_back_waits_for_no_disk(folder):
    with power_place(folder / "day") as place:
        store = place.open()
        run = store.claim("r", "w")
        save, back, saved_later = (
            synced_in(place.recording, lambda: run.save({"n": 1})),
            synced_in(place.recording, run.close),
            synced_in(place.recording, lambda: store.save("another", {"n": 1}, workflow="w")),
        )
        failed = synced_in(place.recording, lambda: store.carry(lambda run: 1 / 0, "r"))

    assert (save, back, saved_later, failed) == (1, 0, 1, 2)


def test_whatever_is_written_after_a_claim_was_given_back_takes_it_along(folder):
    script: list[Step] = [Enter("r"), Put("r", {"n": 1}), Leave("r"), Enter("r"), Leave("r"), Save("s", {"n": 2})]
    with power_place(folder / "day") as place:
        play(place.recording, World(place), script)
        [*_, (_, disk, allowed)] = mornings(place.recording)

    assert [kept.status for kept, _ in allowed["r"]] == ["ready"]
    for seed in range(20):
        assert wrong_in_the_morning(disk.after_loss(Random(seed)), allowed, folder / "morning") == []


@pytest.mark.parametrize("moment", [1, 2])
def test_an_interruption_while_a_claim_is_given_back_leaves_no_save_behind_that_does_not_wait(folder, moment):
    with power_place(folder / "day") as place:
        store = place.open()
        run, kept = store.claim("r", "w"), store.claim("kept", "w")
        base: Any = store._session.store
        writer = base._connections.writer
        writer._cursor = Interrupted(writer.cursor(), moment)
        with pytest.raises(KeyboardInterrupt):
            run.close()

        assert synced_in(place.recording, lambda: kept.save({"n": 1})) == 1


class Interrupted:
    """A cursor that is interrupted at its n-th statement, once."""

    def __init__(self, cursor: Any, moment: int) -> None:
        self._cursor = cursor
        self._moment = moment

    def execute(self, *given: Any) -> Any:
        self._moment -= 1
        done = self._cursor.execute(*given)
        if self._moment == 0:
            raise KeyboardInterrupt
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


# --- the tests can fail ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_whoever_does_not_wait_for_the_disk_loses_saves_and_is_found_out(synchronous, folder):
    with power_place(folder / "day") as place:
        saves = [Save("r", {"n": number}) for number in range(4)]
        play(place.recording, World(place), [Hurry(synchronous), *saves])

    moments = range(len(place.recording.events) - 10, len(place.recording.events) + 1)
    wrong = wrong_after_losses(place.recording, Random(0), folder / "morning", moments)

    assert [one for one in wrong if "r is " in one]


def test_what_was_synced_is_kept_and_what_was_not_is_kept_lost_or_torn():
    disk = Disk()
    for event in (Created("f", 0), FolderSynced(), Wrote(0, 0, b"a" * 2000), Synced(0), Wrote(0, 1000, b"b" * 2000)):
        disk.take(event)

    left = {disk.after_loss(Random(seed))["f"] for seed in range(200)}

    assert {one[:1000] for one in left} == {b"a" * 1000}
    assert {b"a" * 2000, b"a" * 1000 + b"b" * 2000} < left


def test_a_name_that_no_sync_made_safe_comes_or_goes_by_chance():
    disk = Disk({"old": b"1"})
    for event in (Created("new", 1), Wrote(1, 0, b"2"), Synced(1), Deleted("old")):
        disk.take(event)

    left = [disk.after_loss(Random(seed)) for seed in range(200)]

    assert {tuple(sorted(files)) for files in left} == {(), ("new",), ("old",), ("new", "old")}
    assert {files["new"] for files in left if "new" in files} == {b"2"}


def test_everything_that_reaches_the_files_is_recorded(folder):
    with power_place(folder / "day") as place:
        play(place.recording, World(place), SHORT)
        [*_, (_, disk, _)] = place.recording.moments()
        for name in ("runs.db", "runs.db-wal"):
            assert disk.now()[name] == (place.folder / name).read_bytes()
    assert "DISABLE_DIRSYNC" not in apsw.compile_options, "the recording takes it that SQLite syncs folders"
