"""Asks the C library to keep large blocks of memory instead of returning them after every encoding.

glibc takes a block over 128 KB fresh from the kernel each time, and ormsgpack grows its buffer through several of
them: encoding 1 MB took 530 us, of which 440 were page faults. glibc raises that limit to the size of a large
block that is freed; so one is taken and freed, untouched, which costs a few us once per doubling of the state.
Elsewhere than on glibc this does nothing, and costs as little.
"""

from __future__ import annotations

_KEPT_BYTES_MAX = 31 << 20  # glibc raises its limit up to 32 MB

_kept_bytes = 0


def keep_large_blocks(size: int) -> None:
    """Let blocks of a few times this size be taken from memory that the process has already."""
    global _kept_bytes  # noqa: PLW0603  # the C library's limit is the process's
    if size * 3 <= _kept_bytes or _kept_bytes == _KEPT_BYTES_MAX:
        return
    _kept_bytes = min(size * 6, _KEPT_BYTES_MAX)
    bytes(_kept_bytes)  # zeros come from calloc: no page of it is touched
