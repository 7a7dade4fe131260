"""Where the stores and the floor's files go: all on one disk, and a real one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keepstep.store.places import file_system_of

ROOT = Path(__file__).parent.parent
IN_MEMORY = ("tmpfs", "ramfs")


@contextmanager
def working_folder(parent: str | None) -> Iterator[Path]:
    """A folder for this run, taken away at its end."""
    place = Path(parent) if parent else ROOT / "build"
    place.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=place))
    if (kind := file_system_of(folder)) in IN_MEMORY:
        print(f"warning: {folder} is on {kind}, where nothing is made durable; name a disk with --dir", file=sys.stderr)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def fresh_folder(parent: Path) -> Iterator[Path]:
    """An empty folder for one round."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def bytes_in(folder: Path) -> int:
    """What all files in a folder take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
