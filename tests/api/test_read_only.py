"""A store opened for reading: everything can be seen, nothing can be changed."""

import pytest

import keepstep


def with_a_run(place):
    """A store with a run of two steps."""
    store = place.open()
    store.save("r", {"n": 1}, label="first", workflow="w")
    store.save("r", {"n": 2})
    store.tag("r", customer="ada")
    return store


@pytest.fixture
def writer(shared_place):
    """A store of any kind that can be opened twice."""
    return with_a_run(shared_place)


@pytest.fixture
def reader(shared_place, writer):
    """The same, opened for reading."""
    return shared_place.open(read_only=True)


def test_everything_can_be_read(writer, reader):
    writer.fork("r", id="r-b")

    assert reader.read_only
    assert not writer.read_only
    assert reader.load("r") == writer.load("r")
    assert reader.look("r") == writer.look("r")
    assert reader.history("r") == writer.history("r")
    assert reader.at("r", label="first").state == {"n": 1}
    assert reader.diff("r", 1, 2) == writer.diff("r", 1, 2)
    assert reader.runs(tags={"customer": "ada"}) == writer.runs(tags={"customer": "ada"})
    assert reader.due() == writer.due()
    assert reader.children("r") == writer.children("r")
    assert reader.verify("r").ok
    assert reader.size("r") == writer.size("r")
    assert reader.size().runs == 2
    with pytest.raises(keepstep.NoSuchRun):
        reader.look("unknown")


def test_nothing_can_be_written(writer, reader):
    before = writer.look("r")

    for verb in (
        lambda: reader.save("r", {}),
        lambda: reader.save("new", {}, workflow="w"),
        lambda: reader.claim("r"),
        lambda: reader.claim("new", "w"),
        lambda: reader.claim_due(),  # noqa: PLW0108 - all are calls
        lambda: reader.carry(lambda run: 1, "r"),
        lambda: reader.fork("r", id="r-b"),
        lambda: reader.tag("r", a=1),
        lambda: reader.note("r", "x"),
        lambda: reader.delete("r"),
    ):
        with pytest.raises(keepstep.ReadOnly):
            verb()

    assert writer.look("r") == before
    assert writer.runs().items[0].run_id == "r"


def test_what_others_write_is_seen(writer, reader):
    for number in range(3, 6):
        writer.save("r", {"n": number})
        assert reader.load("r").state == {"n": number}
    writer.delete("r")

    assert reader.load("r") is None


def test_a_reader_sees_who_holds_a_run(shared_place, writer, reader):
    writer.claim("r")
    assert reader.look("r").holder.stands

    shared_place.kill(writer)

    assert not reader.look("r").holder.stands
    assert [one.run_id for one in reader.due().items] == ["r"]


def test_reading_leaves_no_trace(disk_place):
    with_a_run(disk_place).close()
    before = {entry: entry.read_bytes() for entry in disk_place.folder.rglob("*") if entry.is_file()}

    reader = disk_place.open(read_only=True)
    reader.load("r")
    reader.runs()
    reader.close()

    assert {entry: entry.read_bytes() for entry in disk_place.folder.rglob("*") if entry.is_file()} == before


def test_opening_for_reading_creates_nothing(disk_place):
    with pytest.raises(keepstep.CannotOpen):
        disk_place.open(read_only=True)

    assert list(disk_place.folder.iterdir()) == []


def test_a_backup_can_be_taken_from_a_reader(disk_place):
    with_a_run(disk_place)
    reader = disk_place.open(read_only=True)

    reader.backup(str(disk_place.folder / "copy"))

    assert disk_place.open(f"{disk_place.kind}:{disk_place.folder / 'copy'}").load("r").state == {"n": 2}


def test_memory_is_never_read_only():
    with pytest.raises(keepstep.BadInput):
        keepstep.open("memory:", read_only=True)
