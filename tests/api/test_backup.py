"""A copy of a store, made while it is in use."""

import threading

import pytest

import keepstep


def copy_of(place, name="copy"):
    """Where the copy is, and the URL to open it by."""
    target = place.folder / name
    return str(target), f"{place.kind}:{target}"


def test_a_backup_holds_every_run(disk_place):
    store = disk_place.open()
    for number in range(20):
        store.save(f"r{number}", {"n": number}, label="a", workflow="w")
        store.tag(f"r{number}", number=number)
    with store.run("r0") as run:
        run.finish("done")
    store.delete("r1")
    target, url = copy_of(disk_place)

    store.backup(target)

    copy = disk_place.open(url)
    assert copy.runs(limit=100).items == store.runs(limit=100).items
    assert copy.look("r0").result == "done"
    assert copy.load("r1") is None
    assert copy.at("r2", label="a").state == {"n": 2}
    assert all(copy.verify(one.run_id, expect=one.digest).ok for one in store.runs(limit=100).items)


def test_both_go_on_by_themselves(disk_place):
    store = disk_place.open()
    store.save("r", {"n": 1}, workflow="w")
    target, url = copy_of(disk_place)
    store.backup(target)

    copy = disk_place.open(url)
    copy.save("r", {"n": "copy"})
    store.save("r", {"n": "original"})

    assert copy.load("r").state == {"n": "copy"}
    assert store.load("r").state == {"n": "original"}


def test_nobody_holds_a_run_in_a_backup(disk_place):
    store = disk_place.open()
    with store.run("r", "w") as run:
        run.save({"n": 1})
        target, url = copy_of(disk_place)
        store.backup(target)
        copy = disk_place.open(url)
        with copy.run("r") as copied:
            assert copied.state == {"n": 1}
            copied.save({"n": "copy"})
        run.save({"n": 2})

    assert store.load("r").state == {"n": 2}


def test_a_deleted_run_stays_dead_in_a_backup(disk_place):
    store = disk_place.open()
    with store.run("r", "w"):
        pass
    store.delete("r")
    target, url = copy_of(disk_place)
    store.backup(target)

    with disk_place.open(url).run("r", "w") as run:
        assert run.epoch == 2


def test_a_backup_taken_while_others_write_is_consistent(disk_place):
    store, other = disk_place.open(), disk_place.open()
    other.save("r", {"n": 0}, workflow="w")
    stop = threading.Event()

    def write():
        while not stop.is_set():
            other.save("r", {"n": other.load("r").step, "text": "words " * 50})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            store.backup(copy_of(disk_place, f"copy{number}")[0])
    finally:
        stop.set()
        writer.join()

    steps = []
    for number in range(5):
        copy = disk_place.open(copy_of(disk_place, f"copy{number}")[1])
        found = copy.load("r")
        assert found.state["n"] == found.step - 1
        assert copy.verify("r").ok
        steps.append(found.step)
    assert steps == sorted(steps)


def test_a_backup_replaces_nothing(disk_place):
    store = disk_place.open()
    store.save("r", {"n": 1}, workflow="w")
    target, url = copy_of(disk_place)
    store.backup(target)
    store.save("r", {"n": 2})

    with pytest.raises(keepstep.KeepstepError):
        store.backup(target)
    with pytest.raises(keepstep.KeepstepError):
        store.backup(str(disk_place.path))

    assert disk_place.open(url).load("r").state == {"n": 1}
    assert store.load("r").state == {"n": 2}


def test_a_backup_to_nowhere_is_an_error(disk_place):
    store = disk_place.open()

    with pytest.raises(keepstep.CannotOpen):
        store.backup(str(disk_place.folder / "no" / "such" / "folder"))


def test_a_path_is_a_target_too(disk_place):
    store = disk_place.open()
    store.save("r", {"n": 1}, workflow="w")
    target, url = copy_of(disk_place)

    store.backup(disk_place.folder / "copy")

    assert target
    assert disk_place.open(url).load("r").state == {"n": 1}


def test_a_url_is_a_target_too(disk_place):
    store = disk_place.open()
    store.save("r", {"n": 1}, workflow="w")
    _, url = copy_of(disk_place)

    store.backup(url)

    assert disk_place.open(url).load("r").state == {"n": 1}


@pytest.mark.parametrize("target", [None, "", 5, b"copy"])
def test_what_is_no_path_is_refused(memory_store, target):
    with pytest.raises(keepstep.BadInput):
        memory_store.backup(target)


def test_a_store_in_memory_has_no_backup(memory_store):
    with pytest.raises(keepstep.WrongUse):
        memory_store.backup("copy")
