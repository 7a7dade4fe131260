"""A fleet on a database that is stopped hard, behind a network that cuts and hangs: nothing is lost or done twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstep
from tests.fleet.fleet import LEASE_SECONDS, Fleet
from tests.postgres_server import Server
from tests.proxy import Proxy

HANG_SECONDS = LEASE_SECONDS * 1.5
"""So long that every lease passes."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that waits for the disk."""
    server = Server(durable=True)
    server.start()
    yield server
    server.remove()


def carry(
    server: Server, folder: Path, *, workers: int, runs: int, pause_seconds: float, limit_seconds: float
) -> Fleet:
    """Let a fleet carry orders while all of this befalls it, and judge what it did."""

    def restart() -> None:
        server.stop()
        server.start()

    def hang() -> None:
        proxy.hang()
        threading.Timer(HANG_SECONDS, proxy.go_on).start()

    with Proxy(server.port) as proxy, keepstep.open(server.url) as store:
        troubles = {
            "stopped hard": restart,
            "cut before": lambda: proxy.cut(2, "before"),
            "cut after": lambda: proxy.cut(2, "after"),
            "hung": hang,
        }
        place = server.url.replace(f":{server.port}/", f":{proxy.port}/")
        fleet = Fleet(place, folder, workers=workers, seed=3, troubles=troubles)
        fleet.carry(store, runs, pause_seconds=pause_seconds, limit_seconds=limit_seconds)
        proxy.go_on()
        fleet.judge(store, runs)
    return fleet


def test_what_befalls_a_database_and_its_network_is_not_seen_in_what_a_few_workers_did(server, tmp_path):
    fleet = carry(server, tmp_path, workers=3, runs=25, pause_seconds=0.3, limit_seconds=280)
    assert sum(fleet.befell.values()) > 5, fleet.befell


@pytest.mark.soak
def test_what_befalls_a_database_and_its_network_is_not_seen_in_what_a_fleet_did(server, tmp_path):
    fleet = carry(server, tmp_path, workers=8, runs=500, pause_seconds=0.4, limit_seconds=3000)
    assert set(fleet.befell) >= {"killed", "frozen", "stopped hard", "cut before", "cut after", "hung", "asked"}
