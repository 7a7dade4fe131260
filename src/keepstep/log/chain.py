"""The chain: every record's digest covers the digest before it and its own head; the head covers its body.

    digest(0) = BLAKE2b-16(run id, person "keepstep run")
    digest(n) = BLAKE2b-16(digest(n - 1) + head(n))

A store keeps each digest beside its record, so that damage is found where it is. The chain shows damage, not a
forger: whoever can write the file can compute it anew, unless the last digest is kept elsewhere.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from keepstep.errors import KeepstepError
from keepstep.log.records import AnyRecord, decode_head

DIGEST_BYTES = 16


class Stored(NamedTuple):
    """A record as a store keeps it."""

    seq: int
    head: bytes
    digest: bytes
    body: bytes | None = None


class Damage(NamedTuple):
    """One thing that is wrong in a log. `seq` 0 speaks of the run's row."""

    seq: int
    what: str


def genesis(run_id: str) -> bytes:
    """The digest before a run's first record."""
    name = run_id.encode("utf-8", "surrogatepass")
    return blake2b(name, digest_size=DIGEST_BYTES, person=b"keepstep run").digest()


def digest_after(digest: bytes, head: bytes) -> bytes:
    """The digest of a record, given the one before it."""
    return blake2b(digest + head, digest_size=DIGEST_BYTES).digest()


def digest_of(body: bytes) -> bytes:
    """The digest by which a head names its body."""
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


class Walk:
    """Checks a whole log, record by record in order of seq, and goes on after damage."""

    def __init__(self, run_id: str) -> None:
        self.seq = 0
        self.digest = self._computed = genesis(run_id)
        """The last digest as it is stored, and as it should be: the next record tells which of the two is damaged."""
        self._trusted = True

    def begin_after(self, one: Stored) -> None:
        """Begin in the middle of a log, behind a record that is taken as it is stored."""
        self.seq, self.digest, self._computed = one.seq, one.digest, one.digest

    def step(self, one: Stored) -> tuple[AnyRecord | None, list[Damage]]:
        """Check the next record: it, if it can be read, and everything that is wrong with it or before it."""
        damage: list[Damage] = []
        if one.seq != self.seq + 1:
            damage.append(Damage(self.seq + 1, _gap(self.seq + 1, one.seq)))
            self._trusted = False
        before, computed = self.digest, digest_after(self._computed, one.head)
        self.seq, self.digest, self._computed = one.seq, one.digest, one.digest
        try:
            record = decode_head(one.head)
        except KeepstepError as error:
            self._trusted = len(one.digest) == DIGEST_BYTES
            return None, [*damage, Damage(one.seq, str(error))]
        if self._trusted and one.digest != computed and one.digest != digest_after(before, one.head):
            self._computed = computed
            damage.append(Damage(one.seq, "its head and its digest do not belong together"))
        elif record.seq != one.seq:
            damage.append(Damage(one.seq, f"it calls itself record {record.seq}"))
        self._trusted = True
        if (wrong := _body_damage(one, record)) is not None:
            damage.append(wrong)
        return record, damage


def _gap(expected: int, found: int) -> str:
    if found > expected:
        missing = f"record {expected} is" if found == expected + 1 else f"records {expected} to {found - 1} are"
        return f"{missing} missing"
    return f"record {found} comes out of order"


def _body_damage(one: Stored, record: AnyRecord) -> Damage | None:
    """What is wrong with a body that is there; whether one may be absent only the fold of `pruned` can tell."""
    if one.body is None:
        return None
    if record.body is None:
        return Damage(one.seq, "it has a body that its head does not name")
    if len(one.body) != record.body_bytes:
        return Damage(one.seq, f"its body has {len(one.body)} bytes instead of {record.body_bytes}")
    if digest_of(one.body) != record.body:
        return Damage(one.seq, "its body is not the one that was written")
    return None
