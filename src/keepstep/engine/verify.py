"""Walking a run's chain: what is damaged, missing or out of order, and what can still be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from keepstep.codec.envelope import unpack
from keepstep.engine.checkpoints import load
from keepstep.engine.context import Engine
from keepstep.engine.looks import Verification
from keepstep.engine.rows import check_id, near
from keepstep.errors import BadInput, Damaged, KeepstepError, NewerFormat, NoSuchRun, StoreError, shown
from keepstep.log.chain import DIGEST_BYTES, Damage, Stored, Walk
from keepstep.log.fold import Fold, Folding, encode_fold
from keepstep.log.records import AnyRecord, Pruned, Saved

CHUNK = 500
"""Records read at once: bounded memory, few queries."""
UNREADABLE = (Damaged, NewerFormat)
"""What speaks of the stored bytes. A store that fails or is busy says nothing about them: the check ends with it."""


@dataclass
class Findings:
    """What a walk gathers."""

    walk: Walk
    run_id: str
    records: int = 0
    damage: list[Damage] = field(default_factory=list[Damage])
    row: Folding | None = field(default_factory=Folding)
    """The fold of the log, as long as it can be folded."""
    saved: list[int] = field(default_factory=list[int])
    absent: set[int] = field(default_factory=set[int])
    """Seqs of bodies that are named but not there, until a `pruned` explains them."""
    expected: bytes | None = None
    expected_seen: bool = False

    def take(self, one: Stored) -> None:
        """Check one record and fold it."""
        self.records += 1
        record, damage = self.walk.step(one)
        self.damage += damage
        self.expected_seen = self.expected_seen or one.digest == self.expected
        if record is None:
            self.row = None
            return
        self._fold(record, one.digest)
        if isinstance(record, Saved):
            self.saved.append(one.seq)
        if isinstance(record, Pruned):
            self.absent -= {seq for first, last in record.dropped for seq in range(first, last + 1)}
        if record.body is not None and one.body is None:
            self.absent.add(one.seq)
        if one.body is not None:
            self._unpack(one)

    def _fold(self, record: AnyRecord, digest: bytes) -> None:
        if self.row is None:
            return
        try:
            self.row.apply(record, self.row.admit(record, self.run_id, holder=True), digest)
        except KeepstepError as error:
            self.damage.append(Damage(record.seq, f"it cannot follow: {error}"))
            self.row = None

    def _unpack(self, one: Stored) -> None:
        assert one.body is not None
        try:
            unpack(one.body)
        except StoreError as error:
            if not self.damage or self.damage[-1].seq != one.seq:
                self.damage.append(Damage(one.seq, str(error)))


async def verify(engine: Engine, run_id: str, expect: str | None) -> Verification:
    """Check everything that is stored of a run."""
    check_id(engine.limits, run_id)
    findings = Findings(Walk(run_id), run_id, expected=_expected(expect))
    row = await _row(engine, findings)
    while chunk := await engine.store.records(run_id, after=findings.walk.seq, limit=CHUNK):
        for one in chunk:
            findings.take(one)
    if row is None and not findings.records and not findings.damage:
        raise NoSuchRun(run_id, await near(engine, run_id))
    findings.damage += [Damage(seq, "its body is missing") for seq in findings.absent]
    _compare(findings, row)
    return Verification(
        run_id,
        findings.records,
        findings.walk.digest.hex(),
        sorted(findings.damage),
        await _last_good(engine, findings),
    )


def _expected(expect: str | None) -> bytes | None:
    if expect is None:
        return None
    try:
        digest = bytes.fromhex(expect)
    except (ValueError, TypeError):
        digest = b""
    if len(digest) != DIGEST_BYTES:
        raise BadInput(
            f"expect= is {shown(expect)}; give a digest as look(...).digest has it: {2 * DIGEST_BYTES} hex digits."
        )
    return digest


async def _row(engine: Engine, findings: Findings) -> Fold | None:
    try:
        return (await engine.store.view(findings.run_id)).row
    except UNREADABLE as error:
        findings.damage.append(Damage(0, f"the row cannot be read: {error}"))
        return None


def _compare(findings: Findings, row: Fold | None) -> None:
    """The row must be the fold of the log, and the digest kept elsewhere must stand in the chain."""
    if row is not None:
        last = findings.walk.seq
        if row.seq > last:
            findings.damage.append(Damage(last + 1, f"the log ends at record {last}; the row knows {row.seq}"))
        elif row.digest != findings.walk.digest:
            findings.damage.append(Damage(0, "the row's digest is not the chain's end"))
        elif findings.row is not None and encode_fold(findings.row) != encode_fold(row):
            findings.damage.append(Damage(0, "the row is not the fold of the log"))
    if findings.expected is not None and not findings.expected_seen:
        findings.damage.append(Damage(0, f"the chain has no digest {findings.expected.hex()}: it is another log"))


async def _last_good(engine: Engine, findings: Findings) -> int | None:
    """The newest checkpoint with which nothing is wrong, and all of whose frames can be read."""
    wrong = {one.seq for one in findings.damage}
    for seq in reversed([seq for seq in findings.saved if seq not in wrong]):
        try:
            await load(engine, findings.run_id, seq)
        except (*UNREADABLE, KeyError):
            continue
        return seq
    return None
