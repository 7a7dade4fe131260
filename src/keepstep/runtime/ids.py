"""Random ids: of batches, owners and forks."""

from __future__ import annotations

import os
import secrets


class SystemIds:
    """Ids from the operating system's randomness."""

    def batch(self) -> bytes:
        """Tells one append from every other."""
        return os.urandom(8)

    def owner(self) -> str:
        """Names one open store in one process."""
        return secrets.token_hex(12)

    def short(self) -> str:
        """The end of a fork's id."""
        return secrets.token_hex(4)
