"""Random ids: of batches, effects, owners and forks."""

from __future__ import annotations

import os
import secrets

BATCH_BYTES = 8
KEY_BYTES = 12
AT_ONCE = 256
"""Asking the system for each would let go of the interpreter lock at every append, which threads have to queue for."""


class Stock:
    """Random bytes in pieces of one size, taken from the system many at a time."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pieces: list[bytes] = []
        self._pid = 0

    def take(self) -> bytes:
        """A piece that nobody else gets."""
        if self._pid != os.getpid():  # a forked child must not go on with what its parent has
            self._pieces, self._pid = [], os.getpid()
        try:
            return self._pieces.pop()
        except IndexError:
            size = self._size
            data = os.urandom(size * AT_ONCE)
            self._pieces = [data[at : at + size] for at in range(size, len(data), size)]
            return data[:size]


class SystemIds:
    """Ids from the operating system's randomness."""

    def __init__(self) -> None:
        self._batches = Stock(BATCH_BYTES)
        self._keys = Stock(KEY_BYTES)

    def batch(self) -> bytes:
        """Tells one append from every other."""
        return self._batches.take()

    def effect(self) -> str:
        """The idempotency key of one effect."""
        return self._keys.take().hex()

    def owner(self) -> str:
        """Names one open store in one process."""
        return secrets.token_hex(12)

    def short(self) -> str:
        """The end of a fork's id."""
        return secrets.token_hex(4)
