"""Texts as the tables hold them: UTF-8 bytes, which hold any text and are ordered as Python orders it."""

from __future__ import annotations

from keepstep.errors import BadInput


def to_bytes(text: str) -> bytes:
    """The stored form of a text."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            f"A text is not valid Unicode ({error}); nothing was written. Give it without lone surrogates."
        ) from None


def after_all(prefix: bytes) -> bytes:
    """The first bytes behind all texts that begin so; no byte of a text is the last one that there is."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
