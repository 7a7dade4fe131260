"""The files of a store, as somebody sees them who does not know keepstep."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path


def tree(folder: Path, leave_out: str | None = None) -> dict[str, bytes | None]:
    """Everything in a folder, but for what begins so: the content of files, None for folders."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*")}
    return {
        name: path.read_bytes() if path.is_file() else None
        for name, path in found.items()
        if not path.name.endswith("-shm")  # what SQLite's processes tell each other; reading changes it
        and (leave_out is None or not name.startswith(leave_out))
    }


def holds(folder: Path, text: str) -> bool:
    """Whether a text stands anywhere in a folder: in a file's name, plainly, or within something in base64."""
    plain = text.encode()
    within = [plain, *(_in_base64(plain, shift) for shift in range(3))]
    found = tree(folder)
    return any(one in name.encode() + b"\n" + (content or b"") for name, content in found.items() for one in within)


def _in_base64(plain: bytes, shift: int) -> bytes:
    """The characters that are the same whatever stands around the bytes, when so many stand before a group of three."""
    whole = b64encode(b"\0" * shift + plain)
    return whole[-(-8 * shift // 6) : 8 * (shift + len(plain)) // 6]
