"""How a measure is to be taken: where, how thoroughly, and beside whom."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, TypeVar

from benchmarks.folder import fresh_folder
from benchmarks.fresh import in_fresh_process
from benchmarks.peers import missing

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """What every measure is handed."""

    folder: Path
    quick: bool = False
    """Fewer repetitions: to see that it works, not to believe it."""
    with_peers: bool = True

    def times(self, usual: int, quick: int) -> int:
        return quick if self.quick else usual

    def rounds(self, count: int, function: Callable[..., Any], /, **arguments: Any) -> list[Any]:
        """What the function returns in so many fresh processes, each with an empty folder."""
        results: list[Any] = []
        for _ in range(count):
            with fresh_folder(self.folder) as folder:
                results.append(in_fresh_process(function, folder=str(folder), **arguments))
        return results

    def beside(self, peers: Mapping[str, str], measure: Callable[[str], T]) -> dict[str, T]:
        """The same measure of every peer that is installed; a peer that fails loses its figure, not the table."""
        if not self.with_peers:
            return {}
        absent = missing()
        found: dict[str, T] = {}
        for name, contender in peers.items():
            if name in absent:
                continue
            try:
                found[name] = measure(contender)
            except CalledProcessError:
                print(f"{name} failed at {contender}; its figure is left out", file=sys.stderr)
        return found
