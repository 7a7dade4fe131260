"""Compression of stored bodies: one byte says how, the rest is raw or one zstd frame."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from keepstep.errors import Damaged

if TYPE_CHECKING:
    from zstandard import ZstdCompressor, ZstdDecompressor

RAW, ZSTD = b"\x00", b"\x01"
SMALL_BYTES = 512  # below, zstd gains little and costs as much as the rest of the step
LEVEL = 3  # agent text: 1 KB to 0.49 in 7 us, 34 KB to 0.30 in 0.1 ms; level 1 needs 0.32 and four fifths of the time


class _Contexts(threading.local):
    """Shared by threads, a context fails at random; made for each frame, it costs more than a frame of 1 KB itself."""

    compressor: ZstdCompressor | None = None
    decompressor: ZstdDecompressor | None = None


_own = _Contexts()


def compress(data: bytes) -> bytes:
    """Compress the data if that makes it smaller."""
    if len(data) > SMALL_BYTES:
        packed = (_own.compressor or _new_compressor()).compress(data)
        if len(packed) < len(data):
            return ZSTD + packed
    return RAW + data


def decompress(data: bytes | memoryview, limit: int) -> bytes:
    """Give the data back; more than `limit` bytes of it are refused."""
    how, packed = data[:1], data[1:]
    if how == RAW:
        _check_size(len(packed), limit)
        return bytes(packed)
    if how != ZSTD:
        raise Damaged("A stored body is neither raw nor compressed in a way that is known.")
    from zstandard import ZstdError, frame_content_size

    try:
        size = frame_content_size(packed)
        if size < 0:
            raise Damaged("A stored body cannot be decompressed: it does not say how long it is.")
        _check_size(size, limit)
        return (_own.decompressor or _new_decompressor()).decompress(packed, allow_extra_data=False)
    except (ZstdError, MemoryError) as error:
        raise Damaged(f"A stored body cannot be decompressed: {error}.") from error


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise Damaged(f"A stored body holds {size} bytes, more than the {limit} allowed.")


def _new_compressor() -> ZstdCompressor:
    from zstandard import ZstdCompressor

    _own.compressor = ZstdCompressor(level=LEVEL)
    return _own.compressor


def _new_decompressor() -> ZstdDecompressor:
    from zstandard import ZstdDecompressor

    _own.decompressor = ZstdDecompressor()
    return _own.decompressor
