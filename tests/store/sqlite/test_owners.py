from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from keepstep.errors import StoreFailed
from keepstep.runtime.clock import SystemClock
from keepstep.store import owner_locks
from keepstep.store.base import Committed, Query, Refused
from keepstep.store.owner_locks import OwnerLocks
from tests.places import Place
from tests.store.sqlite.growing import Log, child, claiming, done, opened, said

HOLD = """
from keepstep.runtime.clock import SystemClock
store = opened(sys.argv[1], SystemClock())
done(store.enlist("b" * 24, 3600))
done(store.commit([Log("r").opened(owner="b" * 24)]))
print("held", flush=True)
sys.stdin.read()
"""


def lock_files(path):
    return {file.name for file in Path(f"{path}-owners").iterdir()}


@pytest.fixture
def holding(path):
    """Another process that holds the run `r`."""
    process = child(HOLD, path)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_run_of_a_killed_process_is_free_at_once(path, holding):
    store = opened(path, SystemClock())
    assert done(store.view("r")).holder.stands is True
    assert done(store.rows(Query(due=True), None, 5)).rows == []
    holding.kill()
    holding.wait()
    view = done(store.view("r"))
    assert view.holder.stands is False
    assert view.holder.until_us > view.now_us
    done(store.enlist("c" * 24, 60))
    [claimed] = done(store.claim(None, 5, claiming("r", "c" * 24).decide))
    assert claimed.append.row.owner == "c" * 24
    assert "b" * 24 in lock_files(path)
    done(store.retire("c" * 24))
    assert not Path(f"{path}-owners").exists()
    done(store.close())


def test_a_frozen_process_loses_its_run_when_its_lease_passes_and_may_renew_it(path, holding):
    clock = SystemClock()
    os.kill(holding.pid, signal.SIGSTOP)
    store = opened(path, clock)
    assert done(store.view("r")).holder.stands is True
    clock._last_us = clock.now_us() + 7200 * 10**6
    assert done(store.view("r")).holder.stands is False
    done(store.enlist("c" * 24, 60))
    assert done(store.renew("b" * 24, 60)).stands is True
    assert done(store.view("r")).holder.stands is True
    os.kill(holding.pid, signal.SIGCONT)
    done(store.close())


def test_an_owner_knows_which_runs_are_its_own(store, clock):
    done(store.enlist("o", 10))
    a, b = Log("a"), Log("b")
    done(store.commit([a.opened(owner="o"), b.opened(owner="o"), Log("c").opened(), a.saved()]))
    renewal = done(store.renew("o", 10))
    assert (renewal.stands, renewal.now_us) == (True, clock.us)
    assert renewal.held == {"a": (3, 1), "b": (2, 1)}
    clock.us += 20_000_000
    assert done(store.view("a")).holder.stands is False
    assert done(store.renew("o", 10)).stands is True
    assert done(store.view("a")).holder.stands is True
    done(store.retire("o"))
    done(store.retire("o"))
    renewal = done(store.renew("o", 10))
    assert renewal.stands is False
    assert set(renewal.held) == {"a", "b"}
    assert done(store.view("a")).holder == ("o", 0, False)


def test_closing_without_retiring_frees_the_runs_at_once(path, clock):
    one, other = opened(path, clock), opened(path, clock)
    done(one.enlist("o", 3600))
    done(one.commit([Log("r").opened(owner="o")]))
    assert isinstance(done(other.commit([claiming("r", "p")]))[0], Refused)
    done(one.close())
    assert isinstance(done(other.commit([claiming("r", "p")]))[0], Committed)
    done(other.close())


def test_a_missing_lock_file_leaves_it_to_the_lease(path, clock):
    one, other = opened(path, clock), opened(path, clock)
    done(one.enlist("o" * 3, 60))
    done(one.commit([Log("r").opened(owner="o" * 3)]))
    for file in Path(f"{path}-owners").iterdir():
        file.unlink()
    assert done(other.view("r")).holder.stands is True
    clock.us += 60_000_000
    assert done(other.view("r")).holder.stands is False
    done(one.close())
    done(other.close())


def test_what_dead_owners_leave_is_cleared_once_no_run_names_them(path, clock):
    for n in range(3):
        store = opened(path, clock)
        done(store.enlist(f"{n:024x}", 3600))
        if n == 0:
            done(store.commit([Log("r").opened(owner=f"{n:024x}")]))
        done(store.close())
    store = opened(path, clock)
    assert lock_files(path) == {f"{0:024x}", f"{2:024x}"}
    done(store.enlist("c" * 24, 3600))
    assert lock_files(path) == {f"{0:024x}", "c" * 24}
    done(store.close())


def test_a_heartbeat_goes_on_beside_commits(path):
    store = opened(path, SystemClock())
    done(store.enlist("o", 60))
    failed, stop = [], threading.Event()

    def beat():
        try:
            while not stop.is_set():
                assert done(store.renew("o", 60)).stands
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=beat)
    thread.start()
    log = Log("r")
    done(store.commit([log.opened(owner="o")]))
    for _ in range(50):
        assert isinstance(done(store.commit([log.saved()]))[0], Committed)
    stop.set()
    thread.join()
    assert not failed
    done(store.close())


# --- the locks themselves --------------------------------------------------------------------------------------------


def test_a_lock_is_held_until_it_is_dropped(tmp_path):
    mine, theirs = OwnerLocks(tmp_path / "owners"), OwnerLocks(tmp_path / "owners")
    assert theirs.held("a") is None
    mine.take("a")
    mine.take("a")
    assert mine.held("a") is theirs.held("a") is True
    mine.drop("a")
    mine.drop("a")
    assert theirs.held("a") is None
    assert list(tmp_path.iterdir()) == []


def test_clearing_spares_the_living_and_those_named(tmp_path):
    mine, theirs = OwnerLocks(tmp_path), OwnerLocks(tmp_path)
    for owner in ("a", "b", "c"):
        mine.take(owner)
    mine.close()
    mine.take("a")
    theirs.clear(["b"])
    assert [mine.held(owner) for owner in "abc"] == [True, False, None]
    mine.close()


def test_a_dead_owners_lock_may_be_taken_anew_but_not_a_living_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(owner_locks, "TRIES", 3)
    mine, theirs = OwnerLocks(tmp_path), OwnerLocks(tmp_path)
    mine.take("a")
    with pytest.raises(StoreFailed, match="alive already"):
        theirs.take("a")
    mine.close()
    theirs.take("a")
    theirs.close()


@pytest.mark.parametrize("owner", ["../../evil", "a/b", "", ".", "A", "x" * 500, "\0", "\ud800"])
def test_no_owners_name_leaves_the_folder(tmp_path, owner):
    locks = OwnerLocks(tmp_path / "owners")
    locks.take(owner)
    [file] = (tmp_path / "owners").iterdir()
    assert file.name.startswith("x")
    assert OwnerLocks(tmp_path / "owners").held(owner) is True
    locks.close()


def test_looking_at_a_lock_from_many_threads_never_takes_a_looker_for_the_owner(tmp_path):
    dead = OwnerLocks(tmp_path)
    dead.take("a")
    dead.close()
    seen = []

    def look():
        locks = OwnerLocks(tmp_path)
        seen.extend(locks.held("a") for _ in range(300))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {False}


def test_a_child_that_closes_its_copy_does_not_free_the_parents_lock(tmp_path):
    mine = OwnerLocks(tmp_path)
    mine.take("a")
    if os.fork() == 0:
        mine.forget()
        os._exit(0)
    os.wait()
    assert OwnerLocks(tmp_path).held("a") is True
    mine.close()


def test_two_processes_see_each_others_locks(tmp_path):
    mine = OwnerLocks(tmp_path)
    mine.take("a")
    code = "from keepstep.store.owner_locks import OwnerLocks\nprint(OwnerLocks(sys.argv[1]).held('a'))"
    assert said(child(code, tmp_path)) == "True"
    mine.close()
    assert said(child(code, tmp_path)) == "False"


@pytest.mark.parametrize("look", ["due", "runs", "look"])
def test_who_leaves_in_good_order_while_a_list_is_read_has_left_nothing_behind(tmp_path, monkeypatch, look):
    place = Place("sqlite", "sync", tmp_path)
    holder, reader = place.open(), place.open()
    run = holder.claim("r", "w")
    left = []

    def held(owner):
        """The lock is looked at when the list is read already, and its owner has just gone."""
        if not left:
            left.append(owner)
            run.finish(1)
            holder.close()
        return False

    base: Any = reader._session.store
    monkeypatch.setattr(base._locks, "held", held)

    found = {
        "due": lambda: [one.status for one in reader.due().items],
        "runs": lambda: [one.status for one in reader.runs().items],
        "look": lambda: [reader.look("r").status],
    }[look]()

    assert left
    assert found == ([] if look == "due" else ["finished"])
    place.close()
