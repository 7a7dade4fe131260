"""Places on the disk where an embedded store may live, and why others are refused, in words that say what to do."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

from keepstep.errors import CannotOpen

NETWORK = frozenset((
    "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs",
))  # fmt: skip
"""File systems whose locks and shared memory do not hold between machines."""

FILE_MODE = 0o600
FOLDER_MODE = 0o700

_MOUNTS = Path("/proc/self/mountinfo")


def check_place(place: str | Path, *, is_file: bool, must_exist: bool = False) -> None:
    """Refuse a path at which no store can live. A store that is not there yet needs its parent folder."""
    path = Path(place)
    if "\0" in str(path):
        raise CannotOpen(f"Cannot open {str(path)!r}: no path holds a null byte. Use a plainer one.")
    _check_parent(path)
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        if must_exist:
            raise CannotOpen(f"There is no store at {path}. Check the path; only writers create one.") from None
        kind = None
    except OSError as error:
        raise cannot_open(path, error) from error
    if kind is not None:
        _check_kind(path, kind, is_file=is_file)
    refuse_network(path if kind is not None else path.parent)


def _check_parent(path: Path) -> None:
    parent = path.parent
    try:
        kind = parent.stat().st_mode
    except FileNotFoundError:
        raise CannotOpen(f"Cannot open {path}: the folder {parent} does not exist. Create it first.") from None
    except OSError as error:
        raise cannot_open(path, error) from error
    if not stat.S_ISDIR(kind):
        raise CannotOpen(f"Cannot open {path}: {parent} is not a folder. Check the path.")


def _check_kind(path: Path, kind: int, *, is_file: bool) -> None:
    if is_file and stat.S_ISDIR(kind):
        raise CannotOpen(f"Cannot open {path}: it is a folder. Name a file inside it, such as {path / 'runs.db'}.")
    if is_file and not stat.S_ISREG(kind):
        raise CannotOpen(f"Cannot open {path}: it is not a regular file. Name another path.")
    if not is_file and not stat.S_ISDIR(kind):
        raise CannotOpen(f"Cannot open {path}: it is a file, and this store needs a folder. Name another path.")


def refuse_network(path: Path) -> None:
    """Refuse a network file system, where it can be told: there, two machines would both think they hold a lock."""
    kind = file_system_of(path)
    if kind in NETWORK:
        raise CannotOpen(
            f"Cannot open {path}: it is on a network file system ({kind}), where locks do not hold. "
            "Use a local disk, or a PostgreSQL store to share runs between machines."
        )


def file_system_of(path: Path) -> str | None:
    """The kind of file system a path is on; None where that cannot be told (it can on Linux)."""
    try:
        lines = _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    return pick_mount(str(path.resolve()), lines)


def pick_mount(path: str, lines: list[str]) -> str | None:
    """The kind of the mount that a path is under, from the lines of mountinfo."""
    best, kind = -1, None
    for line in lines:
        left, dash, right = line.partition(" - ")
        fields = left.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = _plain(fields[4])
        # A later mount at the same place covers the earlier one.
        if len(point) >= best and (path + "/").startswith(point.rstrip("/") + "/"):
            best, kind = len(point), right.split(" ")[0]
    return kind


def _plain(escaped: str) -> str:
    """Undo the octal escapes of mountinfo."""
    for code in ("\\040", "\\011", "\\012", "\\134"):
        escaped = escaped.replace(code, chr(int(code[1:], 8)))
    return escaped


def cannot_open(path: str | Path, error: OSError) -> CannotOpen:
    """The error for what the operating system said."""
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = "permission denied. Check who owns the file and its folder, or open with read_only=True."
    elif error.errno == errno.EROFS:
        hint = "the file system is read-only. Open with read_only=True, or name another path."
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "no space is left. Free some and try again."
    elif error.errno in (errno.ENAMETOOLONG, errno.EINVAL):
        hint = "the operating system does not take this name. Use a shorter or plainer one."
    elif error.errno == errno.ENOTDIR:
        hint = "a part of the path is a file. Check the path."
    else:
        hint = f"{error.strerror or error}."
    return CannotOpen(f"Cannot open {path}: {hint}")


def create_private(path: Path) -> bool:
    """Create an empty file that only its owner reads; False when there is one already. Its name is durable."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        return False
    except OSError as error:
        raise cannot_open(path, error) from error
    os.close(descriptor)
    sync_folder(path.parent)
    return True


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
