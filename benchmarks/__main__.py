"""`python -m benchmarks`: take every measure, and print one table."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from subprocess import CalledProcessError
from time import perf_counter
from typing import Any

from benchmarks.floor import Floor
from benchmarks.folder import working_folder
from benchmarks.peers import missing, versions
from benchmarks.row import Row, broken
from benchmarks.setting import Setting
from benchmarks.table import render, to_json
from benchmarks.words import message
from keepstep.store.places import file_system_of

MEASURES = (
    "conversation",
    "small_state",
    "many_runs",
    "reading",
    "claiming",
    "working",
    "opening",
    "effects",
    "importing",
    "listing",
    "memory",
    "bare_sqlite",
    "postgres",
)


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    with working_folder(options.dir) as folder:
        setting = Setting(folder, options.quick, with_peers=not options.no_peers)
        about = _about(folder)
        print(" · ".join(f"{name} {value}" for name, value in about.items()), flush=True)
        rows = [row for name in options.only or MEASURES for row in _measure(name, setting)]
    print(render(rows, missing()))
    if options.json:
        Path(options.json).write_text(to_json(rows, about) + "\n")
    return any(row.broken for row in rows)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description="How fast keepstep is, in ratios that hold.")
    parser.add_argument("--only", metavar="NAME", action="append", choices=MEASURES, help=", ".join(MEASURES))
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, smaller sizes; not to be believed")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    parser.add_argument("--json", metavar="FILE", help="write everything measured there, round by round")
    parser.add_argument("--dir", metavar="FOLDER", help="where the files go; ./build when not given")
    return parser.parse_args(arguments)


def _measure(name: str, setting: Setting) -> Iterator[Row]:
    rows: Callable[[Setting], Iterator[Row]] = import_module(f"benchmarks.{name}").rows
    start = perf_counter()
    try:
        yield from rows(setting)
    except CalledProcessError:  # what went wrong stands above, from the process itself
        yield broken(name, "see above")
    print(f"{name}: {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def _about(folder: Path) -> dict[str, Any]:
    """What the figures, unlike the ratios, depend on."""
    import apsw

    payloads = [message(number).encode() for number in range(500)]
    floor = Floor(folder)
    micros = floor.append(payloads) / len(payloads) * 1e6
    floor.close()
    return {
        "keepstep": version("keepstep"),
        **versions(),
        "Python": platform.python_version(),
        "SQLite": apsw.sqlite_lib_version(),
        "cores": os.cpu_count(),
        "file system": file_system_of(folder) or "unknown",
        "floor": f"{micros:.0f} us an append of 1 KB",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
