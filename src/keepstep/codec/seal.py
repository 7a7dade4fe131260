"""The stage at which bodies will be sealed; this version passes them through."""

from __future__ import annotations

from typing import Protocol


class Seal(Protocol):
    """Closes bodies before they are stored and opens them again; bound to the run and the place in its log."""

    @property
    def is_sealing(self) -> bool:
        """False for the one that passes through; written into each envelope."""
        ...

    def seal(self, data: bytes, run_id: str, seq: int) -> bytes:
        """Close the data."""
        ...

    def open(self, data: memoryview, run_id: str, seq: int) -> bytes | memoryview:
        """Open the data; raise Damaged if it is not what was sealed for this run and seq."""
        ...


class Plain:
    """Passes everything through."""

    is_sealing = False

    def seal(self, data: bytes, run_id: str, seq: int) -> bytes:
        """Give the data as it is."""
        return data

    def open(self, data: memoryview, run_id: str, seq: int) -> memoryview:
        """Give the data as it is."""
        return data


PLAIN: Seal = Plain()
