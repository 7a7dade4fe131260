"""From a run id to the name of its file: no id escapes the folder, and no two ids meet, on any file system.

    a-z 0-9 _ -      stand for themselves
    .                stands for itself, but not at the beginning
    anything else    each byte of its UTF-8 as %xx: capitals (file systems fold case), accents (they normalise), slashes
    con, nul, ...    what Windows takes for a device has its first letter escaped
    no id at all     %
    long ids         the beginning of the above, ~, and a digest of the id; `~` stands in no other name

The full id is in every line of the file, and is checked.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from keepstep.errors import BadInput

SUFFIX = ".jsonl"
NAME_CHARS_MAX = 120
"""With suffixes below 143, the most that any common file system takes (eCryptfs); others take 255."""

_ESCAPED = re.compile(r"^\.|[^a-z0-9_.-]")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")


def stem(id: str) -> str:
    """A file name for this id, without a suffix; `BadInput` when it is not text that can be written anywhere."""
    try:
        whole = id.encode()
    except UnicodeEncodeError:
        raise BadInput(
            f"The id {id!r} holds half of a surrogate pair, which has no stored form. Use another id."
        ) from None
    name = _ESCAPED.sub(_escape, id)
    if _DEVICE.match(name):
        name = f"%{ord(name[0]):02x}{name[1:]}"
    if len(name) <= NAME_CHARS_MAX:
        return name or "%"
    digest = blake2b(whole, digest_size=16, person=b"keepstep name").hexdigest()
    return f"{name[: NAME_CHARS_MAX - len(digest) - 1]}~{digest}"


def file_name(run_id: str) -> str:
    """The name of a run's file."""
    return stem(run_id) + SUFFIX


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02x}" for byte in match[0].encode())
