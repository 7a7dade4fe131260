"""What the workers of the kill tests do: save states that can be told to be whole, and report what was saved."""

from __future__ import annotations

from typing import Any

import keepstep
from tests.crash.processes import Report

LEASE = "1h"
"""Nobody who goes on after a kill can have waited for it."""
WINDOW = 60


def state_at(number: int) -> dict[str, Any]:
    """The state of step `number`: whether a state is whole can be told from its number."""
    first = max(1, number - WINDOW)
    return {
        "number": number,
        "messages": [f"message {one} " + "abc" * (one % 40) for one in range(first, number + 1)],
        "nested": {"half": number // 2, "pairs": [(one, str(one)) for one in range(number % 7)]},
    }


def check(store: keepstep.Store, run_id: str, at_least: int) -> int:
    """A run is whole, and has everything that was saved; returns its step."""
    loaded = store.load(run_id)
    if loaded is None:
        assert at_least == 0, f"{run_id} has no state, but {at_least} were saved"
        return 0
    assert loaded.step >= at_least, f"{run_id} is at {loaded.step}, but {at_least} were saved"
    assert loaded.state == state_at(loaded.step)
    verification = store.verify(run_id)
    assert verification.ok, verification.damage
    return loaded.step


def save_for_ever(report: Report, hear: Any, url: str, run_id: str, at_least: int) -> None:
    """Go on with a run under a claim, from wherever it is; report each step once its save has returned."""
    with keepstep.open(url, lease=LEASE) as store:
        check(store, run_id, at_least)
        with store.run(run_id, "killed") as run:
            step = run.step or 0
            assert run.state == (state_at(step) if step else None)
            while True:
                step += 1
                assert run.save(state_at(step), "on") == step
                report(step)
                if step % 5 == 0:
                    run.note(f"at {step}")
                    run.tag(step=step)


def save_unclaimed_for_ever(report: Report, hear: Any, url: str, run_id: str, at_least: int) -> None:
    """The same by the plain pair."""
    with keepstep.open(url, lease=LEASE) as store:
        step = check(store, run_id, at_least)
        while True:
            step += 1
            assert store.save(run_id, state_at(step), "on", workflow="killed") == step
            report(step)


def save_in_threads_for_ever(report: Report, hear: Any, url: str, run_id: str, at_least: int) -> None:
    """The same with a neighbour in another thread, so that commits hold the records of several runs."""
    import threading

    with keepstep.open(url, lease=LEASE) as store:
        check(store, run_id, at_least)

        def disturb() -> None:
            number = 0
            while True:
                number += 1
                store.save(f"{run_id} neighbour", {"number": number}, workflow="neighbour")

        threading.Thread(target=disturb, daemon=True).start()
        with store.run(run_id, "killed") as run:
            step = run.step or 0
            while True:
                step += 1
                assert run.save(state_at(step), "on") == step
                report(step)


def save_async_for_ever(report: Report, hear: Any, url: str, run_id: str, at_least: int) -> None:
    """The same with the async handles, and a neighbour in another task."""
    import asyncio

    async def disturb(store: keepstep.AsyncStore) -> None:
        number = 0
        while True:
            number += 1
            await store.save(f"{run_id} neighbour", {"number": number}, workflow="neighbour")

    async def main() -> None:
        async with keepstep.open_async(url, lease=LEASE) as store:
            neighbour = asyncio.create_task(disturb(store))
            async with store.run(run_id, "killed") as run:
                step = run.step or 0
                assert run.state == (state_at(step) if step else None)
                while True:
                    step += 1
                    assert await run.save(state_at(step), "on") == step
                    report(step)
            await neighbour

    with keepstep.open(url, lease=LEASE) as store:
        check(store, run_id, at_least)
    asyncio.run(main())
