"""The envelope of every stored body: magic, version and flags, then what was compressed and sealed.

byte 0, 1   magic: 6B 73 ("ks")
byte 2      high four bits: version; low four: flags (1: sealed; the others are zero)
byte 3 ...  the body; not sealed: one byte 00 (raw) or 01 (zstd), then the content
"""

from __future__ import annotations

from keepstep.codec.compress import compress, decompress
from keepstep.codec.seal import PLAIN, Seal
from keepstep.errors import Damaged, NewerFormat

MAGIC = b"ks"
VERSION = 1
SEALED = 0x1
LIMIT = 1 << 30  # a body that unpacks to more than this is no state anybody saved

_HEADER_BYTES = len(MAGIC) + 1


def pack(content: bytes, seal: Seal = PLAIN, run_id: str = "", seq: int = 0) -> bytes:
    """Compress and seal the content and put it in an envelope."""
    flags = SEALED if seal.is_sealing else 0
    return b"%b%c%b" % (MAGIC, VERSION << 4 | flags, seal.seal(compress(content), run_id, seq))


def unpack(body: bytes, *, limit: int = LIMIT, seal: Seal = PLAIN, run_id: str = "", seq: int = 0) -> bytes:
    """Take the content out of its envelope; more than `limit` bytes of it are refused."""
    if len(body) <= _HEADER_BYTES or body[: len(MAGIC)] != MAGIC:
        raise Damaged("A stored body is not one of keepstep's, or is cut off: it does not begin as they all do.")
    version, flags = body[2] >> 4, body[2] & 0xF
    if version > VERSION or flags & ~SEALED:
        raise NewerFormat(f"A stored body has format {version}.{flags}; this keepstep reads {VERSION}. Upgrade it.")
    if version < VERSION:
        raise Damaged(f"A stored body has format {version}, which no keepstep wrote.")
    if flags & SEALED and not seal.is_sealing:
        raise NewerFormat("A stored body is sealed, and the store was opened without the means to open it.")
    if seal.is_sealing and not flags & SEALED:
        raise Damaged("A stored body is not sealed where all should be.")
    return decompress(seal.open(memoryview(body)[_HEADER_BYTES:], run_id, seq), limit)
