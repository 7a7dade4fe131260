"""The peers, each used as its documentation says. One that is not installed is named as missing."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

LANGGRAPH, PLAIN, DBOS = "LangGraph", "LangGraph, dicts", "DBOS"

PACKAGES = {
    LANGGRAPH: "langgraph-checkpoint-sqlite",
    PLAIN: "langgraph-checkpoint-sqlite",
    DBOS: "dbos",
}
PEERS = tuple(PACKAGES)


def versions() -> dict[str, str]:
    """The versions of the packages that are installed."""
    found: dict[str, str] = {}
    for package in PACKAGES.values():
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def missing() -> dict[str, str]:
    """What the table says of peers that are not installed."""
    installed = versions()
    return {name: "missing" for name, package in PACKAGES.items() if package not in installed}
