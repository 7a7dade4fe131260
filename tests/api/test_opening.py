"""Opening a store, through both doors: which place is meant, what cannot be one, and options that make no sense."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

import keepstep
from keepstep.errors import shown
from keepstep.runtime.clock import SystemClock
from keepstep.store.memory import MemoryStore
from keepstep.testing import Clock


@pytest.fixture
def here(folder, monkeypatch):
    """An empty folder, in which the test stands."""
    monkeypatch.chdir(folder)
    return folder


def names(folder):
    return sorted(one.name for one in folder.iterdir())


def refusal(error, act):
    """What is said when something is refused."""
    with pytest.raises(error) as caught:
        act()
    assert str(caught.value).endswith(".")
    return str(caught.value)


# --- which place is meant --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "lies_at"),
    [
        ("runs.db", "runs.db"),
        ("./runs.db", "runs.db"),
        ("sqlite:runs.db", "runs.db"),
        (Path("runs.db"), "runs.db"),
        (Path("memory:"), "memory:"),
        (Path("sqlite:runs.db"), "sqlite:runs.db"),
        ("sqlite:sqlite:runs.db", "sqlite:runs.db"),
        ("sqlite:memory:", "memory:"),
        ("sqlite:sqllite:a.db", "sqllite:a.db"),
        ("./sqllite:a.db", "sqllite:a.db"),
        ("a file of mine.db", "a file of mine.db"),
        ("runs.db?mode=memory", "runs.db?mode=memory"),
        ("%41#b.db", "%41#b.db"),
        ("2026-01-01 10:30.db", "2026-01-01 10:30.db"),
        ("C:runs.db", "C:runs.db"),
        ("läufe.db", "läufe.db"),
        ("dir:runs", "runs/keepstep.json"),
        ("dir:./runs/", "runs/keepstep.json"),
        ("dir:sqlite:runs", "sqlite:runs/keepstep.json"),
    ],
    ids=str,
)
def test_a_relative_place_is_in_the_folder_where_one_stands(here, opened, place, lies_at):
    store = opened(place)
    store.save("r", {"n": 1}, workflow="w")

    assert (here / lies_at).is_file()
    assert opened(store.url).load("r").state == {"n": 1}
    assert store.url.endswith(lies_at.removesuffix("/keepstep.json"))


@pytest.mark.parametrize("form", ["{}/runs.db", "sqlite:{}/runs.db", "sqlite://{}/runs.db", "dir:{}/d", "dir://{}/d"])
def test_an_absolute_place_is_where_it_says(folder, opened, form):
    store = opened(form.format(folder))

    assert len(names(folder)) >= 1
    assert f":{folder}/" in store.url


def test_a_store_does_not_move_with_its_process(here, opened, monkeypatch):
    store, other = opened("runs.db"), opened("dir:runs")
    monkeypatch.chdir("/")

    store.save("r", {"n": 1}, workflow="w")
    other.save("r", {"n": 2}, workflow="w")

    assert opened(here / "runs.db").load("r").state == {"n": 1}
    assert opened(f"dir:{here}/runs").load("r").state == {"n": 2}


@pytest.mark.parametrize("place", ["~/runs.db", "sqlite:~/runs.db", "dir:~/runs", Path("~/runs.db")], ids=str)
def test_a_tilde_is_the_home_folder(folder, opened, monkeypatch, place):
    monkeypatch.setenv("HOME", str(folder))

    assert str(folder) in opened(place).url
    assert "~" not in names(folder)


def test_the_home_of_nobody_is_no_place(opened):
    for place in ("~nobody-of-this-name/runs.db", "dir:~nobody-of-this-name/runs"):
        assert "Write the whole path" in refusal(keepstep.CannotOpen, lambda place=place: opened(place))


def test_a_name_in_memory_is_shared_and_no_name_is_private(opened):
    one, two = opened("memory:shared by two"), opened("memory://shared by two")
    private, other = opened("memory:"), opened("memory:")

    one.save("r", {"n": 1}, workflow="w")
    private.save("r", {"n": 2}, workflow="w")

    assert two.load("r").state == {"n": 1}
    assert opened(one.url).load("r").state == {"n": 1}
    assert other.load("r") is None
    assert opened("memory:shared by others").load("r") is None


def test_a_store_object_is_opened_as_it_is(opened):
    base = MemoryStore(SystemClock())

    assert opened(base).url == base.url
    assert "read-only itself" in refusal(keepstep.BadInput, lambda: opened(base, read_only=True))


# --- what is no place ------------------------------------------------------------------------------------------------


class Path8:
    """A path that gives bytes, or what it is told."""

    def __init__(self, given):
        self.given = given

    def __fspath__(self):
        return self.given


NO_PLACES = [None, 0, 5, b"runs.db", ["runs.db"], object(), str, "", " \t", "nul\0.db", "dir:nul\0", "memory:nul\0",
    "\ud800.db", "dir:\ud800", "memory:\ud800", Path8(b"runs.db"), Path8(5), Path8(""), Path8("nul\0")]  # fmt: skip


@pytest.mark.parametrize("place", NO_PLACES, ids=lambda place: ascii(place)[:30])
def test_what_names_no_store_is_refused(here, opened, place):
    said = refusal(keepstep.BadInput, lambda: opened(place))

    assert said.startswith(f"{shown(place)} names no store; give a path or sqlite:PATH")
    assert names(here) == []


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        ("memroy:", "did you mean memory:?"),
        ("MEMORY:", "did you mean memory:?"),
        ("mem:", "did you mean memory:?"),
        (":memory:", "did you mean memory:?"),
        ("sqllite:runs.db", "did you mean sqlite:? For a file of that name write sqlite:sqllite:runs.db."),
        ("SQLite:runs.db", "did you mean sqlite:?"),
        ("sqlite3:///tmp/runs.db", "did you mean sqlite:?"),
        ("Dir:runs", "did you mean dir:?"),
        ("directory:runs", "did you mean dir:?"),
        ("file:runs.db", "for a file of that name write sqlite:file:runs.db."),
        ("file:///tmp/runs.db", "give a path"),
        ("mysql://host/runs", "give a path"),
        ("https://example.org/runs", "give a path"),
    ],
)
def test_an_unknown_url_is_refused_with_what_may_be_meant(here, opened, place, hint):
    said = refusal(keepstep.CannotOpen, lambda: opened(place))

    assert said.startswith("No store is known for")
    assert hint in said
    assert said.endswith("memory: or memory:NAME.")
    assert names(here) == []


@pytest.mark.parametrize("place", ["sqlite:", "dir:", "sqlite://runs.db", "dir://runs", "sqlite://"])
def test_half_a_url_is_refused(here, opened, place):
    said = refusal(keepstep.BadInput, lambda: opened(place))

    assert "path" in said
    assert names(here) == []


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("folder", "it is a folder. Name a file inside it, such as"),
        ("dir:file", "it is a file, and this store needs a folder"),
        ("missing/runs.db", "does not exist. Create it first"),
        ("dir:missing/runs", "does not exist. Create it first"),
        ("file/runs.db", "is not a folder. Check the path"),
        ("dir:file/runs", "is not a folder. Check the path"),
        ("/dev/null", "not a regular file"),
        ("x" * 300, "does not take this name"),
        ("dir:" + "x" * 300, "does not take this name"),
    ],
    ids=lambda text: text[:20],
)
def test_a_path_where_no_store_can_be_is_refused_in_clear_words(here, opened, place, words):
    (here / "folder").mkdir()
    (here / "file").write_text("precious")

    for read_only in (False, True):
        assert words in refusal(keepstep.CannotOpen, lambda how=read_only: opened(place, read_only=how))

    assert names(here) == ["file", "folder"]
    assert (here / "file").read_text() == "precious"


# --- what is something else ------------------------------------------------------------------------------------------


def foreign_database(path):
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE notes (text); INSERT INTO notes VALUES ('precious')")
    connection.close()


FOREIGN = {
    "text": lambda path: path.write_text("precious\n" * 1000),
    "a few bytes": lambda path: path.write_bytes(b"x"),
    "random bytes": lambda path: path.write_bytes(os.urandom(10_000)),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "somebody's database": foreign_database,
    "a run's file": lambda path: path.write_text('{"batch": 1}\n'),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_something_else_is_refused_and_left_alone(folder, opened, make):
    path = folder / "notes.db"
    make(path)
    before = path.read_bytes()

    for read_only in (False, True):
        assert str(path) in refusal(keepstep.NotAStore, lambda how=read_only: opened(path, read_only=how))

    assert path.read_bytes() == before
    assert names(folder) == ["notes.db"]


def test_a_folder_of_something_else_is_refused_and_left_alone(folder, opened):
    (folder / "photo.jpg").write_bytes(b"x")

    for read_only in (False, True):
        said = refusal(keepstep.NotAStore, lambda how=read_only: opened(f"dir:{folder}", read_only=how))
        assert "Name an empty folder, a new one, or a store." in said

    assert names(folder) == ["photo.jpg"]


def test_an_empty_place_becomes_a_store(folder, opened):
    (folder / "empty.db").touch()
    (folder / "empty").mkdir()

    for place in (folder / "empty.db", f"dir:{folder}/empty"):
        assert "empty" in refusal(keepstep.CannotOpen, lambda place=place: opened(place, read_only=True))
        assert opened(place).save("r", {}, workflow="w") == 1


@pytest.mark.parametrize("place", ["runs.db", "dir:runs"])
def test_a_store_that_is_not_there_cannot_be_read(here, opened, place):
    said = refusal(keepstep.CannotOpen, lambda: opened(place, read_only=True))

    assert said == f"There is no store at {here}/{place.removeprefix('dir:')}. Check the path; only writers create one."
    assert names(here) == []


def make_newer(place):
    """As a keepstep of a later format would leave it."""
    if place.startswith("dir:"):
        marker = Path(place.removeprefix("dir:"), "keepstep.json")
        marker.write_text(json.dumps({**json.loads(marker.read_text()), "format": 99, "new": [1]}))
    else:
        connection = apsw.Connection(place)
        connection.execute("PRAGMA user_version = 99")
        connection.close()


@pytest.mark.parametrize("form", ["{}/runs.db", "dir:{}/runs"])
def test_a_store_of_a_newer_version_is_read_and_not_written(folder, opened, form):
    place = form.format(folder)
    with keepstep.open(place) as store:
        store.save("r", {"n": 1}, workflow="w", label="first")
    make_newer(place)

    said = refusal(keepstep.NewerFormat, lambda: opened(place))
    assert "format 99" in said
    assert "read" in said

    reader = opened(place, read_only=True)
    assert reader.load("r").state == {"n": 1}
    assert reader.at("r", label="first").step == 1
    with pytest.raises(keepstep.ReadOnly):
        reader.save("r", {"n": 2})


# --- options ---------------------------------------------------------------------------------------------------------

HALF_A_CLOCK = type("HalfAClock", (), {"now_us": lambda self: 0})()

BAD_OPTIONS = {
    "lease": [0, -1, 0.1, "0s", "100ms", "soon", "", "5", "-5s", b"5s", None, True, [], float("nan"), float("inf"),
        1e300, 10**5000, -(10**5000), "9" * 400 + "d", timedelta(0), timedelta(days=-1), timedelta.max],
    "limits": [5, {}, (), "x", False, keepstep.Limits, keepstep.Limits(state_bytes=-1), keepstep.Limits(tags="a"),  # type: ignore[arg-type]
        keepstep.Limits(id_bytes=None), keepstep.Limits(name_bytes=True), keepstep.Limits(body_bytes=1e6)],  # type: ignore[arg-type]
    "interrupts": [None, 5, "TimeoutError", ("TimeoutError",), [TimeoutError], object, (TimeoutError(),),
        ((TimeoutError,),)],
    "registry": [5, {}, "x", False, keepstep.Registry],
    "clock": [5, "now", object(), False, Clock, HALF_A_CLOCK],
    "read_only": [None, 0, 1, "yes", []],
}  # fmt: skip


@pytest.mark.parametrize("option", BAD_OPTIONS)
def test_an_option_that_makes_no_sense_is_refused_and_creates_nothing(here, opened, option):
    for value in BAD_OPTIONS[option]:
        said = refusal(keepstep.BadInput, lambda value=value: opened("runs.db", **{option: value}))
        assert said.startswith(f"{option}= ")
        assert len(said) < 500

    assert names(here) == []


@pytest.mark.parametrize(
    "options",
    [
        {"lease": "0.2s"},
        {"lease": 0.2},
        {"lease": "1h30m"},
        {"lease": timedelta(days=365)},
        {"lease": "36500d"},
        {"interrupts": TimeoutError},
        {"interrupts": (TimeoutError, KeyboardInterrupt)},
        {"limits": keepstep.Limits(cached_runs=0, cached_bytes=0, tags=0)},
        {"limits": None, "registry": None, "clock": None},
    ],
    ids=str,
)
def test_an_option_at_its_edge_works(here, opened, options):
    store = opened("runs.db", **options)

    with store.run("r", "w") as run:
        run.save({"n": 1})
        assert store.look("r").holder.stands
    assert store.save("r", {"n": 2}) == 2
