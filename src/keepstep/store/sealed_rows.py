"""A run's row as it stands in its column: a checksum of 8 bytes, then the fold. Checked after reading."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from keepstep.errors import Damaged
from keepstep.log.fold import Fields, Fold, decode_fold, encode_fold

CHECK_BYTES = 8


def seal_row(row: Fields) -> bytes:
    """The stored form of a row."""
    data = encode_fold(row)
    return _check(data) + data


def read_row(run_id: str, seq: int, digest: bytes, sealed: bytes) -> Fold:
    """Read a row back; `Damaged` when it is not what was written, or not the one that belongs here."""
    data = sealed[CHECK_BYTES:]
    if _check(data) != sealed[:CHECK_BYTES]:
        raise _damaged(run_id, "its checksum does not fit")
    try:
        row = decode_fold(data)
    except msgspec.MsgspecError as error:
        raise _damaged(run_id, str(error)) from None
    if row.seq != seq or row.digest != digest:
        raise _damaged(run_id, "it is another state's")
    return row


def _check(data: bytes) -> bytes:
    return blake2b(data, digest_size=CHECK_BYTES, person=b"keepstep row").digest()


def _damaged(run_id: str, why: str) -> Damaged:
    return Damaged(f"The row of run {run_id!r} is damaged: {why}. Verify the run, or restore a backup.")
