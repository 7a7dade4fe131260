"""Connections cut at any moment, and a network that hangs: nothing saved is lost, and nothing is written twice."""

from __future__ import annotations

from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest

import keepstep
from keepstep.errors import StoreFailed
from tests.handles import open_behind
from tests.kinds import kinds_of
from tests.proxy import Proxy
from tests.store.postgres.growing import Pen, TurnedClock, done, opened, write

REQUESTS_MAX = 60
TRIES = 5
DOORS = {"sync": keepstep.open, "async": open_behind}


@pytest.fixture
def proxy(postgres_url):
    with Proxy(urlsplit(postgres_url).port or 5432) as proxy:
        yield proxy


def through(proxy: Proxy, url: str, **more: str) -> str:
    """The same store, by way of the proxy."""
    parts = urlsplit(url)
    options = "".join(f"&{name}={value}" for name, value in more.items())
    return f"postgresql://{parts.username}@127.0.0.1:{proxy.port}{parts.path}?{parts.query}{options}"


def until_told(call: Any) -> Any:
    """What a call gives; one that says that nobody knows, or that the store was away, is made again."""
    for _ in range(TRIES):
        try:
            return call()
        except StoreFailed:
            continue
    raise AssertionError("it fails however often it is tried")


def work_on(store: Any, run_id: str) -> list[int]:
    """A run from its beginning to its end; returns the steps that were told to be saved."""
    with until_told(lambda: store.claim(run_id, "w")) as run:
        told = [until_told(lambda number=number: run.save({"n": number}, step=number)) for number in range(4)]
        until_told(lambda: run.finish("done"))
    return told


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_whichever_request_is_cut_every_save_is_written_once(proxy, postgres_url, when, door):
    with keepstep.open(postgres_url) as plain:
        for at in count(1):
            assert at < REQUESTS_MAX
            run_id = f"r-{at}"
            with DOORS[door](through(proxy, postgres_url, timeout="10")) as store:
                proxy.cut(at, when)
                told = work_on(store, run_id)
                struck = proxy.has_cut

            saved = [one.step for one in plain.history(run_id, newest_first=False).items]
            assert told == saved == [0, 1, 2, 3], at
            assert plain.look(run_id).result == "done"
            assert kinds_of(plain, run_id).count("finished") == 1
            assert plain.verify(run_id).ok
            if not struck:
                break
    assert at > 6, "a story of so few requests has none that could be cut"


def test_a_save_whose_answer_was_lost_is_found_and_not_repeated(proxy, postgres_url):
    with keepstep.open(through(proxy, postgres_url)) as store, store.run("r", "w") as run:
        run.save({"n": 1})
        proxy.cut(1, "after")
        assert run.save({"n": 2}) == 2
        assert proxy.has_cut
        assert run.save({"n": 3}) == 3
        assert kinds_of(store) == ["opened", "claimed", "saved", "saved", "saved"]


def test_reading_goes_on_over_a_cut_connection(proxy, postgres_url):
    with keepstep.open(through(proxy, postgres_url)) as store:
        store.save("r", {"n": 1}, workflow="w")
        for when in ("before", "after"):
            proxy.cut(1, when)
            assert store.load("r").state == {"n": 1}
            assert proxy.has_cut


def test_a_network_that_hangs_is_told_of_and_used_again_when_it_works(proxy, postgres_url):
    store = opened(through(proxy, postgres_url, timeout="1"))
    pen = Pen("r", TurnedClock())
    write(store, pen.open())
    append = pen.save()._replace(moved=False)

    proxy.hang()
    with pytest.raises(StoreFailed, match="not known"):
        done(store.commit([append]))
    with pytest.raises(StoreFailed, match=r"lost|reached"):
        done(store.view("r"))
    proxy.go_on()

    assert until_told(lambda: done(store.view("r"))).row.seq in (1, 2)
    until_told(lambda: done(store.commit([append])))
    assert [one.seq for one in done(store.records("r"))] == [1, 2]
    done(store.close())


def test_a_run_goes_on_after_the_network_hung(proxy, postgres_url):
    with keepstep.open(through(proxy, postgres_url, timeout="1")) as store, store.run("r", "w") as run:
        run.save({"n": 1})
        proxy.hang()
        with pytest.raises(StoreFailed):
            run.save({"n": 2})
        proxy.go_on()
        until_told(lambda: run.save({"n": 3}))
        assert store.load("r").state == {"n": 3}
        assert store.verify("r").ok
