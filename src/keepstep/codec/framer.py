"""Which frame comes next: the policy that keeps both history and reading cheap.

    key ── 31 deltas ── segment ── 31 deltas ── segment ── ... ── key

A reader of a delta needs the deltas since the last segment, the segments since the key, and the key: at most
1 + 48 + 31 rows, however long the run. A key comes when the frames since the last one weigh more than a few keys
would, so history costs a small multiple of what changed, and reading a small multiple of the state.
"""

from __future__ import annotations

import msgspec

from keepstep.codec.frames import change_frame, key_frame
from keepstep.codec.parts import Parts

KEY, SEGMENT, DELTA = 0, 1, 2

DELTAS_MAX = 31  # between two segments
SEGMENTS_MAX = 48  # between two keys; with the deltas and the key: 80 rows
KEY_WEIGHT = 4  # frames since the last key may weigh this many keys: ...
KEY_RATIO = 0.35  # ... of which one is guessed to be compressed to this, unless the last one says more


class Plan(msgspec.Struct, frozen=True, eq=False):
    """The next frame, as it should be stored."""

    kind: int
    """0 key, 1 segment, 2 delta."""
    bases: list[int]
    """Seqs of the frames needed besides, nearest first: back to the last segment or key; a segment's: to the key."""
    content: bytes
    whole_bytes: int
    """Bytes of all parts together."""
    parts: Parts


class Framer:
    """Where a run's frames stand: what the next is a change of, and how much has gathered since the last key."""

    def __init__(  # noqa: PLR0917  # what restore is given
        self,
        latest: Parts | None,
        segment: Parts | None,
        deltas: list[int],
        segments: list[int],
        weight: int,
        key_bytes: int,
    ) -> None:
        self._latest = latest
        self._segment = segment  # the parts at the last segment or key
        self._deltas = deltas  # seqs since then
        self._segments = segments  # seqs of the key and the segments after it
        self._key_bytes = key_bytes  # as stored
        self.weight = weight
        """Stored bytes of the frames since the last key."""

    @classmethod
    def fresh(cls) -> Framer:
        """A framer whose first frame will be a key."""
        return cls(None, None, [], [], 0, 0)

    @classmethod
    def restore(  # noqa: PLR0917  # what a reader of rows has at hand
        cls,
        latest: Parts,
        segment: Parts,
        deltas: list[int],
        segments: list[int],
        weight: int,
        key_bytes: int,
    ) -> Framer:
        """Go on after reading: exactly as the framer would have that wrote what was read.

        `segment` is the parts at the last segment or key; `deltas` the seqs since then, `segments` those of the
        key and of the segments after it, oldest first; `key_bytes` what the key takes as stored.
        """
        return cls(latest, segment, list(deltas), list(segments), weight, key_bytes)

    def copy(self) -> Framer:
        """One that advances by itself; what is held is shared."""
        return Framer(
            self._latest, self._segment, list(self._deltas), list(self._segments), self.weight, self._key_bytes
        )

    @property
    def key_bytes(self) -> int:
        """Stored bytes of the last key frame."""
        return self._key_bytes

    @property
    def latest(self) -> Parts | None:
        """The parts of the last accepted frame: what `split` should reuse."""
        return self._latest

    def next(self, parts: Parts) -> Plan:
        """The frame for these parts; nothing advances until it is accepted."""
        if self._latest is None or self._segment is None or self._is_time_for_key(parts):
            return self._key(parts)
        is_delta = len(self._deltas) < DELTAS_MAX
        if is_delta and parts.is_new:
            return self._key(parts)
        content = change_frame(self._latest if is_delta else self._segment, parts)
        if content is None or len(content) >= parts.size:
            return self._key(parts)
        if is_delta:
            return Plan(DELTA, [*reversed(self._deltas), self._segments[-1]], content, parts.size, parts)
        return Plan(SEGMENT, self._segments[::-1], content, parts.size, parts)

    def accept(self, plan: Plan, seq: int, body_bytes: int) -> None:
        """Advance: the frame was stored under the seq and took so many bytes."""
        self._latest = plan.parts
        if plan.kind == DELTA:
            self._deltas.append(seq)
            self.weight += body_bytes
            return
        self._segment = plan.parts
        self._deltas = []
        if plan.kind == SEGMENT:
            self._segments.append(seq)
            self.weight += body_bytes
        else:
            self._segments, self._key_bytes, self.weight = [seq], body_bytes, 0

    def _key(self, parts: Parts) -> Plan:
        return Plan(KEY, [], key_frame(parts), parts.size, parts)

    def _is_time_for_key(self, parts: Parts) -> bool:
        if len(self._segments) > SEGMENTS_MAX and len(self._deltas) == DELTAS_MAX:
            return True
        # What a key would weigh is not known before it is compressed. The last one tells, as far as the state is
        # still that large; nothing else is used, so that a resumed writer decides as this one does.
        key_bytes = max(min(self._key_bytes, parts.size), parts.size * KEY_RATIO)
        return self.weight > KEY_WEIGHT * key_bytes
