"""Many agents on one event loop, each with its own run.

The names are the same as in the sync handles, awaited. What the agents save at the same time goes into the same
commits.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import keepstep

AGENTS = 20
TURNS = 5


async def agent(store: keepstep.AsyncStore, name: str) -> None:
    """One agent: a few turns, a checkpoint after each."""
    async with store.run(name, workflow="chat") as run:
        await run.tag(team="red" if name < "agent-10" else "blue")
        state = run.state or {"messages": []}
        while len(state["messages"]) < TURNS:
            await asyncio.sleep(0.01)  # stands for a call to a model
            state["messages"].append(f"{name} says something")
            await run.save(state)
        await run.finish(len(state["messages"]))


async def main() -> None:
    """Run all of them at once, then ask the store about them."""
    with tempfile.TemporaryDirectory() as folder:
        async with keepstep.open_async(Path(folder) / "runs.db") as store:
            await asyncio.gather(*(agent(store, f"agent-{number:02}") for number in range(AGENTS)))

            page = await store.runs(status="finished", tags={"team": "red"}, order="changed", limit=3)
            for run in page.items:
                print(f"{run.run_id} is {run.status} at step {run.step}")
            print("there are more" if page.next else "these are all")

            size = await store.size()
            print(f"{size.runs} runs, {size.records} records")


if __name__ == "__main__":
    asyncio.run(main())
