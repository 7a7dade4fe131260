"""Random ids: of batches, owners and forks."""

from __future__ import annotations

import os
import secrets

BATCH_BYTES = 8
BATCHES_AT_ONCE = 256
"""Asking the system for each would let go of the interpreter lock at every append, which threads have to queue for."""


class SystemIds:
    """Ids from the operating system's randomness."""

    def __init__(self) -> None:
        self._batches: list[bytes] = []
        self._pid = 0

    def batch(self) -> bytes:
        """Tells one append from every other."""
        if self._pid != os.getpid():  # a forked child must not go on with what its parent has
            self._batches, self._pid = [], os.getpid()
        try:
            return self._batches.pop()
        except IndexError:
            data = os.urandom(BATCH_BYTES * BATCHES_AT_ONCE)
            self._batches = [data[at : at + BATCH_BYTES] for at in range(BATCH_BYTES, len(data), BATCH_BYTES)]
            return data[:BATCH_BYTES]

    def owner(self) -> str:
        """Names one open store in one process."""
        return secrets.token_hex(12)

    def short(self) -> str:
        """The end of a fork's id."""
        return secrets.token_hex(4)
