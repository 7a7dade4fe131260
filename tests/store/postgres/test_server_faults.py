"""A server that is stopped hard and started again under load: whoever writes goes on, and what was saved is there."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import keepstep
from keepstep.errors import CannotOpen, StoreFailed
from tests.children import Child
from tests.postgres_server import Server

RUNS = 6
SAVES = 60
RESTARTS = 3
PATIENCE_SECONDS = 120
TRIES = 20


@pytest.fixture(scope="module")
def server():
    """A server that waits for the disk."""
    server = Server(durable=True)
    server.start()
    yield server
    server.remove()


def saved_all(store, told, run_id):
    """Save step after step, again when nobody knows; only what was told to be saved counts."""
    with store.run(run_id, "w") as run:
        for number in range(SAVES):
            for _ in range(TRIES):
                try:
                    told[run_id] = run.save({"n": number}, step=number)
                    break
                except StoreFailed:
                    continue
        run.finish("done")


def restart(server, ended):
    """Stop it hard and start it again, some times, while others write."""
    for _ in range(RESTARTS):
        if ended():
            break
        time.sleep(0.3)
        server.stop()
        server.start()


def check(url):
    with keepstep.open(url) as store:
        for number in range(RUNS):
            run_id = f"r{number}"
            assert [one.step for one in store.history(run_id, newest_first=False, limit=1000).items] == [*range(SAVES)]
            assert store.look(run_id).result == "done"
            assert store.verify(run_id).ok


def test_threads_go_on_over_a_server_that_was_stopped_hard(server):
    told: dict[str, int] = {}
    errors: list[BaseException] = []
    with keepstep.open(f"{server.url}?schema=threads") as store:

        def work(run_id):
            try:
                saved_all(store, told, run_id)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(f"r{number}",)) for number in range(RUNS)]
        for thread in threads:
            thread.start()
        restart(server, lambda: not any(thread.is_alive() for thread in threads))
        for thread in threads:
            thread.join(PATIENCE_SECONDS)

    assert errors == []
    assert told == {f"r{number}": SAVES - 1 for number in range(RUNS)}
    check(f"{server.url}?schema=threads")


def test_tasks_go_on_over_a_server_that_was_stopped_hard(server):
    async def work(store, run_id):
        async with store.run(run_id, "w") as run:
            for number in range(SAVES):
                for _ in range(TRIES):
                    try:
                        await run.save({"n": number}, step=number)
                        break
                    except StoreFailed:
                        continue
            await run.finish("done")

    async def main():
        async with keepstep.open_async(f"{server.url}?schema=tasks") as store:
            tasks = [asyncio.create_task(work(store, f"r{number}")) for number in range(RUNS)]
            await asyncio.to_thread(restart, server, lambda: all(task.done() for task in tasks))
            await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE_SECONDS)

    asyncio.run(main())
    check(f"{server.url}?schema=tasks")


def test_what_was_saved_before_a_hard_stop_is_there_after_it(server):
    url = f"{server.url}?schema=kept"
    with keepstep.open(url) as store, store.run("r", "w") as run:
        for number in range(20):
            run.save({"n": number})
            if number % 5 == 4:
                server.stop()
                server.start()
                assert store.load("r").state == {"n": number}
    with keepstep.open(url) as store:
        assert store.verify("r").ok


def test_a_server_that_stays_away_is_told_of_and_used_again_when_it_is_back(server, monkeypatch):
    monkeypatch.setattr("keepstep.store.postgres.lines.RECONNECT_SECONDS", 0.1)
    url = f"{server.url}?schema=away"
    with keepstep.open(url) as store:
        store.save("r", {"n": 1}, workflow="w")
        server.stop()
        with pytest.raises(StoreFailed, match="cannot be reached"):
            store.load("r")
        with pytest.raises(StoreFailed):
            store.save("r", {"n": 2})
        with pytest.raises(CannotOpen, match="Check the URL"):
            keepstep.open(url)
        server.start()
        assert store.load("r").state == {"n": 1}
        assert store.save("r", {"n": 3}) == 2


def test_a_sync_process_and_an_async_one_write_one_store(server):
    url = f"{server.url}?schema=both"
    keepstep.open(url).close()

    def by_threads():
        with keepstep.open(url) as store:
            for number in range(40):
                store.save(f"r{number}", {"n": number}, workflow="sync")
                with store.run(f"own{number % 4}", "sync") as run:
                    run.save({"n": number})

    def by_tasks():
        async def main():
            async with keepstep.open_async(url) as store:
                for number in range(0, 40, 8):
                    await asyncio.gather(
                        *(store.save(f"a{n}", {"n": n}, workflow="w") for n in range(number, number + 8))
                    )
                    async with store.run(f"other{number % 3}", "async") as run:
                        await run.save({"n": number})

        asyncio.run(main())

    children = [Child(by_threads), Child(by_tasks)]
    for child in children:
        child.result()

    with keepstep.open(url) as store:
        heads = store.runs(limit=1000).items
        assert len(heads) == 40 + 4 + 40 + len({number % 3 for number in range(0, 40, 8)})
        assert all(store.verify(one.run_id).ok for one in heads)
