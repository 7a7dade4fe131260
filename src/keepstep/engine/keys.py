"""Under which key a call stands in the ledger, so that a run that does it again finds what it did.

    memo            line, step, function, arguments, and which of the equal calls it is
    once with key   that key, in this run
    once without    step, function, and which of its calls it is

A call made inside another effect stands under that one's key; a branch of `gather` under the branch.

The line is in no key of a `once`: what a rollback undid is free to be made again, and what it kept is found on the new
line. Everything else (a memo, a question, a sleep) is made anew there.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from keepstep.errors import BadInput, shown
from keepstep.log.chain import DIGEST_BYTES
from keepstep.log.fold import Fields

_encode = msgspec.msgpack.Encoder().encode


class Place(NamedTuple):
    """Where in the user's code a call is made, besides the step: inside which effect, in which branch."""

    outer: bytes | None = None
    branch: tuple[int, ...] = ()
    keys: Keys | None = None
    """Of which claim: a tool may hold another run, in which none of this is so."""
    depth: int = 0
    """Inside how many effects."""


PLACE: ContextVar[Place] = ContextVar("keepstep place", default=Place())  # noqa: B039 - it never changes


def digest(*material: Any) -> bytes:
    """The key that stands for this."""
    return blake2b(_encode(material), digest_size=DIGEST_BYTES, person=b"keepstep effect").digest()


def key_of_name(name: str, outer: bytes | None = None) -> bytes:
    """The key of an effect that was given one by its user."""
    try:
        return digest("once", outer, name)
    except UnicodeEncodeError:
        raise BadInput(f"key= is {shown(name)}, which is not valid text (a lone surrogate).") from None


class Numbered(NamedTuple):
    """Which of the equal calls at one step a call is."""

    key: bytes
    base: bytes
    """What all of them have in common."""
    number: int
    arguments: bytes
    at: tuple[int, int]
    """The checkpoint after which it is made."""
    outer: bytes | None
    """The effect inside which it is made."""


class Keys:
    """Gives keys to the calls of one claim, and counts the equal ones.

    A call that raised is made again by the same call: a loop that tries until it succeeds makes one effect, and who
    resumes the run finds it at the first try. An effect that starts again counts the calls inside it from the
    beginning.
    """

    def __init__(self) -> None:
        self._inside: defaultdict[bytes | None, _Count] = defaultdict(_Count)
        """By the effect that the calls are made in; None outside of any."""
        self._at: tuple[int, int] = (0, 0)

    @property
    def place(self) -> Place:
        """Where in this run a call is made now."""
        place = PLACE.get()
        return place if place.keys is self else Place(keys=self)

    def base(self, row: Fields, kind: str, *material: Any) -> bytes:
        """What equal calls at one step have in common."""
        place = self.place
        line = 0 if kind == "once" else row.line
        return digest(kind, place.outer, place.branch, line, row.step, *material)

    def numbered(self, row: Fields, kind: str, *material: Any, arguments: bytes = b"") -> Numbered:
        """Which of the equal calls the next one is."""
        base = self.base(row, kind, *material)
        at = row.line, row.saved
        if at != self._at:
            self._at = at
            self._inside.clear()
        outer = self.place.outer
        number = self._inside[outer].next(base, arguments)
        return Numbered(digest(base, number), base, number, arguments, at, outer)

    def raised(self, call: Numbered) -> None:
        """A call raised: the next equal one with the same arguments is the same call."""
        if call.at == self._at:
            self._inside[call.outer].raised(call.base, call.arguments, call.number)

    def inside(self, outer: bytes) -> Place:
        """The place inside an effect that starts, where nothing has been called yet."""
        self._inside.pop(outer, None)
        return Place(outer, keys=self, depth=self.place.depth + 1)


class _Count:
    """How many equal calls there were, and which of them raised and were not made again."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()
        self._raised: dict[tuple[bytes, bytes], list[int]] = {}
        """(what it is one of, its arguments) → their numbers."""

    def next(self, base: bytes, arguments: bytes) -> int:
        """The number of the next one."""
        again = self._raised.get((base, arguments))
        if again:
            return again.pop(0)
        self._counts[base] += 1
        return self._counts[base]

    def raised(self, base: bytes, arguments: bytes, number: int) -> None:
        """This one is made again by the next with the same arguments."""
        insort(self._raised.setdefault((base, arguments), []), number)
