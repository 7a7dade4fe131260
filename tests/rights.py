"""What some tests ask of the operating system, and may not get: to be another user, to have a disk of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

import keepstep
from tests.children import in_child

NOBODY = 65534


def cannot(what: str) -> NoReturn:
    """A developer's machine may not allow it; where changes are judged, a test that did not run is a failure."""
    say = pytest.fail if os.environ.get("CI") else pytest.skip
    say(f"may not {what}: run the tests as root")


def as_nobody(act: Callable[[], Any]) -> str:
    """What a user who owns nothing is given, or told, in a process of its own."""
    if os.geteuid() != 0:
        cannot("become another user")

    def work() -> str:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            return f"gives {act()}"
        except keepstep.KeepstepError as error:
            return f"{type(error).__name__}: {error}"

    return in_child(work)


@contextmanager
def small_disk(folder: Path) -> Generator[Path]:
    """A file system of a few pages."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        cannot("mount a file system")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
