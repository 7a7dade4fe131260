"""Ids: none escapes the store's place, no two meet, and what is no id is refused before anything is written."""

from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path

import pytest

import keepstep
from tests.places import Place
from tests.seeds.stored_files import tree

IDS = (
    "../x", "../../x", "../runs.db", "/etc/x", "//x", "x", "x/../y", ".", "..", "...", "./x", "~/x", "a/b", "a_b",
    "a\\b", "..\\x", "C:\\x", "\\\\host\\x", "RUN", "run", "Run", "rUn",
    unicodedata.normalize("NFC", "r\u00e9sum\u00e9 \u00e5"),
    unicodedata.normalize("NFD", "r\u00e9sum\u00e9 \u00e5"), "\u212b", "\u00c5", "\ufb01", "fi", "\u00df", "ss",
    "x" * 512, "x" * 511 + "y", "X" * 512, "x" * 511, "\u00e9" * 256, "\U0001f600" * 128, "/" * 512, "." * 512,
    "../" * 170, "\0", "a\0b", "a\0", "a", "CON", "con", "Con", "NUL", "nul.txt", "com1", "LPT1", "a:b", "a:",
    ":memory:", "a.", "a..", "a ", "a  ", " a", " ", "a\n", "a\nb", "a\r\nb", "\n", "a\tb", "\x1b[31ma", "\x7f",
    "\u2028", "\u202e", "\u200b", "\ufeff", "\ufffe", "\U0001f469\u200d\U0001f52c", "\U0001f44d",
    "\U0001f44d\U0001f3fd", "\U0010ffff", "%", "%2e%2e%2fx", "%41", "A", "*", "?", "[a]", "{a,b}", "$HOME", "`id`",
    "$(id)", "; rm -rf .", "-rf", "--help", "'", '"', "' OR 1=1 --", "x%", "x_", "runs", "lock", "changes",
    "keepstep.json", "leases", "x.jsonl", "x.jsonl.tmp", "runs.db", "runs.db-wal", "file:x?mode=memory", "sqlite:x",
    "proj/task.1 final", "None", "null", "0", "00", "True", "{}", "x~", "x~12345678",
)  # fmt: skip

NO_IDS = {
    "empty": "",
    "one byte too many": "x" * 513,
    "too many bytes, in few characters": "\u00e9" * 257,
    "far too long": "x" * 100_000,
    "half of a pair": "\ud800",
    "half of a pair in the middle": "run \udfff 1",
    "two halves in the wrong order": "\udc00\ud83d",
}


def state_of(run_id: str) -> dict[str, str]:
    """A state that tells whose it is."""
    return {"of": run_id}


def listed(store: keepstep.Store) -> list[str]:
    """The ids of all runs, in the order of their creation."""
    return [one.run_id for one in store.runs(newest_first=False, limit=1000).items]


@pytest.fixture
def deep(place: Place) -> keepstep.Store:
    """A store some folders down, with things beside it and above it that an id might hit."""
    where = place.folder / "above" / "here"
    where.mkdir(parents=True)
    for folder in (place.folder, where.parent, where):
        for name in ("x", "x.jsonl", "x.jsonl.tmp", "y.jsonl", "a", "etc", "run.jsonl"):
            (folder / name).write_bytes(b"of somebody else")
    return place.open(place.url if place.kind in ("memory", "postgres") else f"{place.kind}:{where / place.path.name}")


def strangers(folder: Path) -> dict[str, bytes | None]:
    """What is in a folder and no store's."""
    return tree(folder, leave_out="above/here/runs")


def test_no_two_of_these_ids_are_the_same() -> None:
    assert len(set(IDS)) == len(IDS)


# --- every id is a run of its own ------------------------------------------------------------------------------------


def test_every_id_is_stored_listed_looked_up_and_deleted(place: Place, deep: keepstep.Store) -> None:
    for run_id in IDS:
        assert deep.load(run_id) is None
        deep.save(run_id, state_of(run_id), next="on", workflow="w")

    with place.open(deep.url) as other:
        for store in (deep, other):
            assert sorted(listed(store)) == sorted(IDS)
            for run_id in IDS:
                loaded, look = store.load(run_id), store.look(run_id)
                assert loaded is not None
                assert (loaded.run_id, loaded.state, loaded.step) == (run_id, state_of(run_id), 1)
                assert (look.run_id, look.state, look.seq) == (run_id, state_of(run_id), 2)
                assert store.at(run_id, step=1).state == state_of(run_id)
                assert run_id in [one.run_id for one in store.runs(starts_with=run_id).items]

    for run_id in IDS[::2]:
        assert [deep.delete(run_id), deep.delete(run_id)] == [True, False]
    assert sorted(listed(deep)) == sorted(IDS[1::2])
    for run_id in IDS[::2]:
        assert deep.load(run_id) is None
        with pytest.raises(keepstep.NoSuchRun):
            deep.look(run_id)
    for run_id in IDS[1::2]:
        assert deep.look(run_id).state == state_of(run_id)
        assert deep.verify(run_id).ok


def test_every_id_is_claimed_finished_and_forked(place: Place, deep: keepstep.Store) -> None:
    runs = [deep.claim(run_id, "w") for run_id in IDS]
    for run in runs:
        run.save(state_of(run.id))
        run.tag(of=run.id[:50])
    with place.open(deep.url) as other:
        for run in runs:
            with pytest.raises(keepstep.RunHeld) as caught:
                other.claim(run.id)
            assert caught.value.run_id == run.id
    for run in runs[::2]:
        run.finish(run.id)
    for run in runs[1::2]:
        run.close()

    assert sorted(one.run_id for one in deep.due(limit=1000).items) == sorted(IDS[1::2])
    for number, run_id in enumerate(IDS):
        if number % 2 == 0:
            assert deep.look(run_id).result == run_id
        fork = deep.fork(run_id, id=f"fork {number}")
        assert (fork.state, fork.parent.run_id if fork.parent else None) == (state_of(run_id), run_id)
        assert [one.run_id for one in deep.children(run_id).items] == [f"fork {number}"]


def test_every_id_has_forks_that_are_named_for_it(deep: keepstep.Store) -> None:
    for run_id in IDS:
        deep.save(run_id, state_of(run_id), workflow="w")

    for run_id in IDS:
        fork = deep.fork(run_id)
        name, _, digits = fork.run_id.rpartition("~")
        assert run_id.startswith(name)
        assert len(digits) == 8
        assert len(name.encode()) > min(len(run_id.encode()), 512 - 9) - 4  # no character is cut in two
        assert fork.parent is not None
        assert fork.parent.run_id == run_id
        assert fork.state == state_of(run_id)


# --- none escapes ----------------------------------------------------------------------------------------------------


def test_no_id_escapes_the_place_of_the_store(place: Place, deep: keepstep.Store) -> None:
    before = strangers(place.folder)
    assert len(before) == 23  # seven files in each of three folders, and the two folders inside

    for number, run_id in enumerate(IDS):
        deep.save(run_id, state_of(run_id), workflow="w")
        with deep.run(run_id) as run:
            run.save(state_of(run_id))
        deep.fork(run_id, id=f"{run_id[:100]}/{number}")
    assert strangers(place.folder) == before
    for run_id in IDS:
        deep.delete(run_id)

    assert strangers(place.folder) == before
    assert not Path("/etc/x").exists()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_each_run_of_a_directory_is_one_flat_file_on_any_file_system(mode: str, folder: Path) -> None:
    place = Place("dir", mode, folder)
    store = place.open()
    store.save(IDS[0], state_of(IDS[0]), workflow="w")
    beside = sorted(place.path.iterdir())
    for run_id in IDS[1:]:
        store.save(run_id, state_of(run_id), workflow="w")

    assert sorted(place.path.iterdir()) == beside
    files = list((place.path / "runs").rglob("*"))

    assert len(files) == len(IDS)
    assert all(path.is_file() and path.parent == place.path / "runs" for path in files)
    folded = {unicodedata.normalize("NFKC", path.name).casefold().rstrip(". ") for path in files}
    assert len(folded) == len(IDS)
    shutil.copytree(place.path, folder / "copy")  # by names alone, as a backup program does
    with place.open(f"dir:{folder / 'copy'}") as copy:
        assert sorted(listed(copy)) == sorted(IDS)
    place.close()


# --- what is no id ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("no_id", NO_IDS.values(), ids=NO_IDS.keys())
def test_what_is_no_id_is_refused_before_anything_is_written(place: Place, deep: keepstep.Store, no_id: str) -> None:
    deep.save("run", state_of("run"), workflow="w")
    before = tree(place.folder)
    digest = deep.look("run").digest

    for verb in (
        lambda: deep.save(no_id, {}, workflow="w"),
        lambda: deep.claim(no_id, "w"),
        lambda: deep.run(no_id, "w").__enter__(),
        lambda: deep.carry(lambda run: 1, no_id, "w"),
        lambda: deep.fork("run", id=no_id),
        lambda: deep.fork(no_id, id="fork"),
        lambda: deep.tag(no_id, a=1),
        lambda: deep.note(no_id, "hi"),
        lambda: deep.delete(no_id),
        lambda: deep.load(no_id),
        lambda: deep.look(no_id),
    ):
        with pytest.raises(keepstep.BadInput, match=r"(?i)a run's id has 1 to 512 bytes|lone surrogate") as caught:
            verb()
        assert str(caught.value).isprintable()

    assert tree(place.folder) == before
    assert listed(deep) == ["run"]
    assert deep.look("run").digest == digest


@pytest.mark.parametrize("run_id", [one for one in IDS if not one.isprintable()], ids=ascii)
def test_an_id_is_shown_in_messages_so_that_it_can_be_read(memory_store: keepstep.Store, run_id: str) -> None:
    with pytest.raises(keepstep.NoSuchRun) as caught:
        memory_store.look(run_id)

    assert repr(run_id) in str(caught.value)
    assert str(caught.value).isprintable()
