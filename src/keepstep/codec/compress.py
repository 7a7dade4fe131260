"""Compression of stored bodies: one byte says how, the rest is raw or one zstd frame."""

from __future__ import annotations

import sys
import threading
from typing import Any

from keepstep.errors import Damaged

RAW, ZSTD = b"\x00", b"\x01"
SMALL_BYTES = 512  # below, zstd gains little and costs as much as the rest of the step
LEVEL = 3  # agent text: 1 KB to 0.58 in 8 us, 1 MB to 0.31 in 3.5 ms; level 1 needs 0.38 and two thirds of the time

_local = threading.local()  # a compressor shared by threads fails at random


def compress(data: bytes) -> bytes:
    """Compress the data if that makes it smaller."""
    if len(data) > SMALL_BYTES:
        compressor = _compressor()
        compressor.set_pledged_input_size(len(data))
        packed: bytes = compressor.compress(data, compressor.FLUSH_FRAME)
        if len(packed) < len(data):
            return ZSTD + packed
    return RAW + data


def decompress(data: bytes | memoryview, limit: int) -> bytes:
    """Give the data back; more than `limit` bytes of it are refused."""
    how, packed = bytes(data[:1]), data[1:]
    if how == RAW:
        if len(packed) > limit:
            raise Damaged(f"A stored body holds {len(packed)} bytes, more than the {limit} allowed.")
        return bytes(packed)
    if how != ZSTD:
        raise Damaged("A stored body is neither raw nor compressed in a way that is known.")
    zstd = _zstd()
    reader = zstd.ZstdDecompressor()
    try:
        plain: bytes = reader.decompress(packed, limit + 1)
    except (zstd.ZstdError, ValueError, EOFError) as error:
        raise Damaged(f"A stored body cannot be decompressed: {error}.") from error
    if len(plain) > limit:
        raise Damaged(f"A stored body unpacks to more than the {limit} bytes allowed.")
    if not reader.eof or reader.unused_data:
        raise Damaged("A stored body ends too early or too late.")
    return plain


def _compressor() -> Any:
    try:
        return _local.compressor
    except AttributeError:
        _local.compressor = _zstd().ZstdCompressor(level=LEVEL)
        return _local.compressor


def _zstd() -> Any:
    """The standard library's zstd, or the same from before it had one; imported when first used."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
