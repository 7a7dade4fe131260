"""Saving states as frames, and reading any of them back in at most 80 rows."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from keepstep.codec.difference import weigh
from keepstep.codec.envelope import pack, unpack
from keepstep.codec.framer import DELTA, KEY, SEGMENT, Framer
from keepstep.codec.frames import rebuild
from keepstep.codec.parts import Parts
from keepstep.engine.bodies import checked, damaged, redacted, written_head
from keepstep.engine.context import Engine, Limits
from keepstep.engine.shape import Shape
from keepstep.errors import BadInput, NotAllowed, StoreError, TooLarge, shown
from keepstep.log.chain import Stored
from keepstep.log.fold import Fields
from keepstep.log.grow import Draft
from keepstep.log.records import Saved


class LargeStateWarning(UserWarning):
    """A state is so large that every step takes noticeable time."""


@dataclass
class Tape:
    """Where the frames of a run stand: what the next state is stored as a change of."""

    framer: Framer
    state: Any = None
    """That state, as its holder gave it or read it; None where nobody asks for it."""

    @property
    def latest(self) -> Parts | None:
        """The parts of the state last saved."""
        return self.framer.latest


@dataclass(frozen=True)
class Loaded:
    """A checkpoint as it was read."""

    head: Saved
    parts: Parts
    frames: Sequence[bytes]
    """Key first, then segments, then deltas."""
    segments: Sequence[int]
    deltas: Sequence[int]

    def tape(self) -> Tape:
        """What a writer needs to go on from this checkpoint."""
        segment = self.parts if not self.deltas else rebuild(self.frames[: len(self.segments)])
        return Tape(
            Framer.restore(
                self.parts, segment, list(self.deltas), list(self.segments), self.head.weight, self.head.key_bytes
            )
        )


class SaveDraft:
    """A state on its way to become a checkpoint: encoded when it was given, made a frame when its place is known."""

    def __init__(
        self,
        tape: Tape,
        parts: Parts,
        run_id: str,
        *,
        next: str | None,
        step: int | None,
        label: str | None,
        version: int,
        state: Any = None,
        flow: tuple[str, bytes | None] | None = None,
    ) -> None:
        self._tape = tape
        self._parts = parts
        self._state = state
        self._run_id = run_id
        self._next = next
        self._asked_step = step
        self._label = label
        self._version = version
        self._flow = flow
        """Version and fingerprint of the flow that goes on from it."""
        self._before: tuple[Framer, Any] | None = None
        self.step = 0
        """The step it got."""

    def __call__(self, row: Fields, ahead: int = 0) -> list[Draft]:
        """The record, `ahead` places after the row's end; the tape moves on."""
        self.step = step = self._place(row)
        plan = self._tape.framer.next(self._parts)
        body = pack(plan.content)
        seq = row.seq + ahead + 1
        self._before = self._tape.framer, self._tape.state
        framer = self._tape.framer.copy()
        self._tape.framer, self._tape.state = framer, self._state
        framer.accept(plan, seq, len(body))
        floor = (row.depth + 1) & row.depth
        jump_seq, jump_step = next(((one[0], one[1]) for one in reversed(row.jumps) if one[2] <= floor), (0, 0))
        saved = Saved(
            step=step,
            next=self._next,
            label=self._label,
            line=row.line,
            parent=row.saved,
            depth=row.depth + 1,
            jump=jump_seq,
            jump_step=jump_step,
            frame=plan.kind,
            bases=_distances(seq, plan.bases),
            whole_bytes=plan.whole_bytes,
            weight=framer.weight,
            key_bytes=framer.key_bytes,
            version=self._version,
            **self._flow_fields(row),
        )
        return [Draft(saved, body)]

    def rewind(self) -> None:
        """The record was not written: the tape is where it was."""
        if self._before is not None:
            (self._tape.framer, self._tape.state), self._before = self._before, None

    def _flow_fields(self, row: Fields) -> dict[str, Any]:
        """What stands in the record of the flow that saves it."""
        if self._flow is None:
            return {}
        version, fingerprint = self._flow
        is_known = fingerprint == row.flow_fingerprint
        return {"flow_version": version, "flow_fingerprint": None if is_known else fingerprint}

    def _place(self, row: Fields) -> int:
        if self._asked_step is None:
            return 1 if row.step is None else row.step + 1
        if row.step is not None and self._asked_step <= row.step:
            raise NotAllowed(
                f"Step {self._asked_step} of run {self._run_id!r} cannot follow step {row.step}: steps grow (gaps are "
                "fine). To go back, fork the run from an earlier step.",
                self._run_id,
            )
        return self._asked_step


def cut(engine: Engine, shape: Shape, state: Any, tape: Tape | None) -> Parts:
    """The state in parts, within the limits."""
    parts = shape.cut(redacted(engine, state, "state"), tape.latest if tape else None)
    limits = engine.limits
    if parts.size > min(limits.state_warn_bytes, limits.state_bytes):
        _weigh_in(parts, limits)
    return parts


_warned = False


def _weigh_in(parts: Parts, limits: Limits) -> None:
    global _warned  # noqa: PLW0603 - once per process is the promise
    heaviest = ", ".join(f"{key!r} {size:,}" for key, size in list(weigh(parts).items())[:3])
    if parts.size > limits.state_bytes:
        raise TooLarge(
            f"The state takes {parts.size:,} bytes; the limit is {limits.state_bytes:,}. Heaviest: {heaviest}. "
            "Keep large things elsewhere and their address in the state, or raise Limits.state_bytes."
        )
    if not _warned:
        _warned = True
        warnings.warn(
            f"The state takes {parts.size:,} bytes, and every step has to encode it. Heaviest: {heaviest}. "
            "Keep large things elsewhere and their address in the state.",
            LargeStateWarning,
            stacklevel=2,
        )


def check_names(limits: Limits, **names: str | None) -> None:
    """Names stand in every row: they are short, and text that can be written."""
    for what, name in names.items():
        if name is None or (type(name) is str and name.isascii() and 0 < len(name) <= limits.name_bytes):
            continue
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"{what}= is {shown(name)}; give text.")
        try:
            size = len(name.encode())
        except UnicodeEncodeError:
            raise BadInput(f"{what}= is {shown(name)}, which is not valid text (a lone surrogate).") from None
        if not name or size > limits.name_bytes:
            raise BadInput(f"{what}= has {size} bytes; give 1 to {limits.name_bytes}.")


def check_needed_names(limits: Limits, **names: Any) -> None:
    """The same for names that may not be left out."""
    for what, name in names.items():
        if name is None:
            raise BadInput(f"{what}= is None; give text.")
    check_names(limits, **names)


# --- reading ---------------------------------------------------------------------------------------------------------


async def load(engine: Engine, run_id: str, seq: int) -> Loaded:
    """Read the checkpoint that is record `seq`."""
    found = await _pick(engine, run_id, [seq])
    head = found[seq][0]
    needed = _absolute(run_id, seq, head.bases)
    found |= await _pick(engine, run_id, needed)
    _check_bases(run_id, [(one, found[one][0]) for one in (seq, *needed)])
    if head.frame == DELTA and needed[0] != head.parent:
        # A change of an older state than the one before: a save between was written, and told as failed. Or damage.
        await written_head(engine, run_id, seq)
    if head.frame == KEY:
        segments, deltas = [seq], list[int]()
    elif head.frame == DELTA:
        anchor = needed[-1]
        further = _absolute(run_id, anchor, found[anchor][0].bases)
        found |= await _pick(engine, run_id, further)
        _check_bases(run_id, [(one, found[one][0]) for one in (anchor, *further)])
        segments, deltas = [*reversed(further), anchor], [*reversed(needed[:-1]), seq]
    else:
        segments, deltas = [*reversed(needed), seq], list[int]()
    frames = [found[one][1] for one in (*segments, *deltas)]
    try:
        parts = rebuild(frames)
    except StoreError as error:
        raise damaged(run_id, seq, str(error)) from error
    return Loaded(head, parts, frames, segments, deltas)


def _check_bases(run_id: str, frames: Sequence[tuple[int, Saved]]) -> None:
    """Frames that build on each other, newest first: each must rest on the next one, and on what that one rests on.

    Heads say this more than once (in bases and key_bytes), so that one which names another frame than it did is found
    out without reading more.
    """
    for (seq, one), (base_seq, base) in pairwise(frames):
        rest = one.bases[1:]
        if one.frame == DELTA:
            fits = base.bases == rest if base.frame == DELTA else not rest
        else:
            fits = base.bases == rest and base.frame == (SEGMENT if rest else KEY)
        if not fits or base.key_bytes != one.key_bytes:
            raise damaged(run_id, seq, f"It does not fit record {base_seq}, which it is a change of.")
    seq, newest = frames[0]
    if (newest.frame == KEY) is not (not newest.bases):
        raise damaged(run_id, seq, "Its head does not say what it is a change of.")


async def _pick(engine: Engine, run_id: str, seqs: Sequence[int]) -> dict[int, tuple[Saved, bytes]]:
    """The frames at these seqs; every one must be there and whole."""
    if not seqs:
        return {}
    found = {one.seq: _frame(run_id, one) for one in await engine.store.pick(run_id, seqs)}
    for seq in seqs:
        if seq not in found:
            raise damaged(run_id, seq, "It is missing.")
    return found


def _frame(run_id: str, one: Stored) -> tuple[Saved, bytes]:
    record = checked(run_id, one)
    if not isinstance(record, Saved):
        raise damaged(run_id, one.seq, f"It is {record.kind!r}, where a checkpoint was expected.")
    if one.body is None:
        raise damaged(run_id, one.seq, "Its state is gone.")
    try:
        return record, unpack(one.body)
    except StoreError as error:
        raise damaged(run_id, one.seq, str(error)) from error


def _distances(seq: int, bases: Sequence[int]) -> list[int]:
    steps: list[int] = []
    for base in bases:
        steps.append(seq - base)
        seq = base
    return steps


def _absolute(run_id: str, seq: int, distances: Sequence[int]) -> list[int]:
    bases: list[int] = []
    base = seq
    for distance in distances:
        base -= distance
        if distance < 1 or base < 1:
            raise damaged(run_id, seq, "Its head names frames that cannot be.")
        bases.append(base)
    return bases


# --- what claimless saves remember -----------------------------------------------------------------------------------


class Tapes:
    """The tapes of the runs last saved without a claim, so that each save stores only what changed."""

    def __init__(self, limits: Limits, mutex: AbstractContextManager[object]) -> None:
        self._limits = limits
        self._mutex = mutex
        self._tapes: OrderedDict[str, tuple[tuple[int, int], Tape]] = OrderedDict()

    def find(self, run_id: str) -> tuple[tuple[int, int], Tape] | None:
        """((incarnation, seq of the checkpoint), tape), if known."""
        with self._mutex:
            found = self._tapes.get(run_id)
            return None if found is None else (found[0], Tape(found[1].framer.copy()))

    def keep(self, run_id: str, at: tuple[int, int], tape: Tape) -> None:
        """Remember where the run stands."""
        with self._mutex:
            self._tapes[run_id] = at, tape
            self._tapes.move_to_end(run_id)
            while len(self._tapes) > 1 and self._over():
                self._tapes.popitem(last=False)

    def forget(self, run_id: str) -> None:
        """The run was deleted."""
        with self._mutex:
            self._tapes.pop(run_id, None)

    def _over(self) -> bool:
        if len(self._tapes) > self._limits.cached_runs:
            return True
        held = sum(tape.latest.size for _, tape in self._tapes.values() if tape.latest is not None)
        return held > self._limits.cached_bytes
