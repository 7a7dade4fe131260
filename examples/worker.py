"""A workflow of named steps, carried by a worker that dies in the middle, and by another one that goes on.

The second worker asks about the payment of which nobody knows whether it happened, instead of making it again.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import keepstep

refund = keepstep.Flow("refund", start="assess")


def pay(order: int) -> str:
    """The first process that pays dies in the middle of it."""
    print(f"  pays order {order}", flush=True)
    if os.environ.get("DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    return f"order {order} is paid"


@refund.step(retries=3)
def assess(run: keepstep.Run, state: dict[str, Any]) -> str:
    """The model's part."""
    state["risk"] = run.memo(lambda order: order % 3, state["order"])
    return "approve" if state["risk"] else "settle"


@refund.step
def approve(run: keepstep.Run, state: dict[str, Any]) -> Any:
    """A person's part."""
    return settle if run.confirm(f"Refund order {state['order']}?") else run.finish("refused")


@refund.step
def settle(run: keepstep.Run, state: dict[str, Any]) -> Any:
    """The payment."""
    return run.finish(run.using(key="pay").once(pay, state["order"]))


def die_in_the_middle(place: Path) -> None:
    """A worker in a process of its own, which does not come back."""
    child = os.fork()
    if child == 0:
        os.environ["DIES"] = "yes"
        with keepstep.open(place) as store, store.worker(refund) as worker:
            worker.wait()
    os.waitpid(child, 0)
    print("  that worker is dead")


def main() -> None:
    """Start two runs, and have them carried."""
    with tempfile.TemporaryDirectory(prefix="keepstep-example-") as folder:
        place = Path(folder) / "runs.db"
        with keepstep.open(place) as store:
            store.start(refund, {"order": 3}, id="refund-3")
        die_in_the_middle(place)
        with keepstep.open(place) as store, store.worker(refund):
            other = store.start(refund, {"order": 4}, id="refund-4")
            while len(gates := store.inbox().items) < 2:
                time.sleep(0.01)
            for gate in sorted(gates, key=lambda gate: gate.run_id):
                print(f"  {gate.run_id} asks: {gate.about}")
                is_doubt = gate.about == "doubt"
                store.answer(gate.id, {"outcome": "happened", "result": "the bank has it"} if is_doubt else True)
            print(f"refund-3: {store.handle('refund-3').result(timeout='1m')}")
            print(f"refund-4: {other.result(timeout='1m')}")


if __name__ == "__main__":
    main()
