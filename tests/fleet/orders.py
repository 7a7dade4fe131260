"""The flow that a fleet carries: six steps, with every kind of effect. `KEEPSTEP_OUTSIDE` names the provider's file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import keepstep
from tests.fleet.provider import Provider

WORK_SECONDS = 0.05
"""So long a tool takes on either side of what it does, so that it is often cut off there."""

orders = keepstep.Flow("orders", start="price", max_steps=6)


def provider() -> Provider:
    return Provider(Path(os.environ["KEEPSTEP_OUTSIDE"]))


def outside(tool: str, order: int, *, once_per_key: bool = False) -> str:
    """Make something happen, which takes a moment."""
    key = keepstep.effect().idempotency_key
    time.sleep(WORK_SECONDS)
    if not provider().do(tool, order, key, once_per_key=once_per_key):
        raise keepstep.NotDone("the key is closed")
    time.sleep(WORK_SECONDS)
    return f"{tool} {order}"


def find_out(doubt: keepstep.Doubt) -> Any:
    """Ask the provider about a call of `charge`."""
    order = doubt.args[0]
    return keepstep.Happened(f"charge {order}") if provider().ask(doubt.idempotency_key) else keepstep.NotDone


@keepstep.tool(name="reserve", idempotent=True)
def reserve(order: int) -> str:
    return outside("reserve", order, once_per_key=True)


@keepstep.tool(name="charge", reconcile=find_out)
def charge(order: int) -> str:
    return outside("charge", order)


@keepstep.tool(name="ship")
def ship(order: int) -> str:
    return outside("ship", order)


def look_up(order: int) -> int:
    time.sleep(WORK_SECONDS)
    return order * 10


# A tool that says NotDone has not happened, and its step is tried again.


@orders.step(retries=1000, backoff=0.01)
def price(run: Any, state: dict[str, Any]) -> str:
    state["price"] = run.memo(look_up, state["order"])
    return "hold"


@orders.step(retries=1000, backoff=0.01)
def hold(run: Any, state: dict[str, Any]) -> str:
    state["log"].append(run.once(reserve, state["order"]))
    return "pay"


@orders.step(retries=1000, backoff=0.01)
def pay(run: Any, state: dict[str, Any]) -> str:
    state["log"].append(run.using(key="pay").once(charge, state["order"]))
    return "send"


@orders.step(retries=1000, backoff=0.01)
def send(run: Any, state: dict[str, Any]) -> str:
    state["log"].append(run.once(ship, state["order"]))
    return "check"


@orders.step(retries=1000, backoff=0.01)
def check(run: Any, state: dict[str, Any]) -> str:
    number = state["order"]
    state["checks"] = run.gather(lambda: run.memo(look_up, number), lambda: run.memo(look_up, number + 1))
    return "close"


@orders.step(retries=1000, backoff=0.01)
def close(run: Any, state: dict[str, Any]) -> Any:
    return run.finish({"order": state["order"], "steps": len(state["log"])})


def expected(order: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state and the result of a run to which nothing befalls."""
    log = [f"reserve {order}", f"charge {order}", f"ship {order}"]
    checks = [order * 10, order * 10 + 10]
    return {"order": order, "log": log, "price": order * 10, "checks": checks}, {"order": order, "steps": 3}
