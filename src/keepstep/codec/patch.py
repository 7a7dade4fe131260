"""Patches: what changed between two encodings of a part, as splices.

A patch is a flat list: keep, delete, insert, keep, delete, insert ...: leave so many bytes as they are, drop so
many, put these in; what follows the last splice stays. Comparing is left to C: `bytes.startswith` with a slice of
a memoryview is a memcmp without a copy (comparing two memoryviews is a hundred times slower). A difference found,
the two sides are brought into step again by searching short anchors of one in the other, near first, then farther:
so the changed length in a list's header, at any depth, is a splice of its own, a few bytes long.
"""

from __future__ import annotations

from typing import Any

from keepstep.errors import Damaged

Splices = list[Any]  # int, int, bytes, int, int, bytes ...

_SPLICES_MAX = 64  # beyond that the rest is put in whole: each costs about 10 us to find and 5 to apply
_ANCHOR_BYTES = 12
SMALL_BYTES = 64  # a part as short as this is stored whole
_SAMPLED_BYTES_MAX = 8192  # in longer parts the samples would take longer than they save
_SAMPLE_BYTES = 24  # texts that have nothing to do with each other have shorter words in common
_SAMPLE = slice(8, 8 + _SAMPLE_BYTES)  # behind every header
_XOR_BYTES = 64  # so many bytes are compared as two numbers, which tells at once where they differ first
_SEARCH_FACTOR = 8  # bytes searched at most, in lengths of the new encoding: bounds the time of a hopeless search


def splices_between(old: bytes, new: bytes) -> Splices | None:
    """What turns the old encoding into the new one; None if a patch would not be smaller than the new one."""
    if len(new) <= SMALL_BYTES or not old or _is_replaced(old, new):
        return None
    return _Search(old, new).run()


def _is_replaced(old: bytes, new: bytes) -> bool:
    """Whether the part looks wholly different: a value that was replaced. It saves such a value nearly all of its time.

    A part that begins or ends as before, or whose middle stood somewhere in the old one, is looked at closely.
    """
    if len(old) > _SAMPLED_BYTES_MAX or len(new) > _SAMPLED_BYTES_MAX:
        return False
    if new[-_SAMPLE_BYTES:] == old[-_SAMPLE_BYTES:] or new[_SAMPLE] == old[_SAMPLE]:
        return False
    middle = len(new) // 2
    return new[middle : middle + _SAMPLE_BYTES] not in old


class _Search:
    def __init__(self, old: bytes, new: bytes) -> None:
        self.old, self.new = old, new
        self.old_view, self.new_view = memoryview(old), memoryview(new)
        self.budget = _SEARCH_FACTOR * len(new)
        self.old_end, self.new_end = len(old), len(new)

    def run(self) -> Splices | None:
        at = to = keep = self.same_after(0, 0)
        tail = self.same_before(at, to, self.old_end, self.new_end)
        self.old_end -= tail
        self.new_end -= tail
        splices: Splices = []
        cost = 0
        while at < self.old_end or to < self.new_end:
            met = self.meet(at, to) if len(splices) < 3 * _SPLICES_MAX else None
            x, y, same = met or (self.old_end, self.new_end, 0)
            splices += (keep, x - at, self.new[to:y])
            cost += y - to + 8
            if cost >= len(self.new):
                return None
            keep, at, to = same, x + same, y + same
        return splices

    def same_after(self, at: int, to: int) -> int:
        """How many bytes are equal from here on."""
        limit = min(self.old_end - at, self.new_end - to)
        starts, view = self.new.startswith, self.old_view
        done, window = 0, _XOR_BYTES
        while done < limit:
            window = min(window, limit - done)
            if not starts(view[at + done : at + done + window], to + done):
                break
            done += window
            window *= 4
        else:
            return done
        while window > _XOR_BYTES:  # the first difference is in this window
            half = window // 2
            if starts(view[at + done : at + done + half], to + done):
                done += half
                window -= half
            else:
                window = half
        at, to = at + done, to + done
        differing = _number(self.old[at : at + window]) ^ _number(self.new[to : to + window])
        return done + ((differing & -differing).bit_length() - 1 >> 3)

    def same_before(self, at_least: int, to_least: int, at: int, to: int) -> int:
        """How many bytes before this place are equal."""
        limit = min(at - at_least, to - to_least)
        ends, view = self.new.endswith, self.old_view
        done, window = 0, _XOR_BYTES
        while done < limit:
            window = min(window, limit - done)
            if not ends(view[at - done - window : at - done], 0, to - done):
                break
            done += window
            window *= 4
        else:
            return done
        while window > _XOR_BYTES:
            half = window // 2
            if ends(view[at - done - half : at - done], 0, to - done):
                done += half
                window -= half
            else:
                window = half
        at, to = at - done, to - done
        differing = _number(self.old[at - window : at]) ^ _number(self.new[to - window : to])
        return done + window - (differing.bit_length() + 7 >> 3)

    def meet(self, at: int, to: int) -> tuple[int, int, int] | None:
        """The next place where both sides are equal again: (place in old, place in new, how many bytes)."""
        best: tuple[int, int, int] | None = None
        left = max(self.old_end - at, self.new_end - to)
        gap, window, enough = 0, 64, 256
        while gap + _ANCHOR_BYTES <= left and self.budget > 0:
            for found in (self.anchor_of_old(at, to, gap, window), self.anchor_of_new(at, to, gap, window)):
                if found is None:
                    continue
                x, y = found
                same = self.same_after(x, y)
                if best is None or same > best[2]:
                    back = self.same_before(at, to, x, y)
                    best = (x - back, y - back, same + back)
                    if best[2] >= enough or x + same == self.old_end or y + same == self.new_end:
                        return best
            gap = gap * 4 or 4
            window *= 8
            # A short match is often a wrong one (the keys of a dict are the same in every message): the nearer
            # it is, the longer it has to be to count.
            enough = max(enough // 2, 24)
        return best

    def anchor_of_old(self, at: int, to: int, gap: int, window: int) -> tuple[int, int] | None:
        x = at + gap
        if x + _ANCHOR_BYTES > self.old_end:
            return None
        end = min(self.new_end, to + gap + window)
        self.budget -= end - to
        y = self.new.find(self.old_view[x : x + _ANCHOR_BYTES], to, end)
        return None if y < 0 else (x, y)

    def anchor_of_new(self, at: int, to: int, gap: int, window: int) -> tuple[int, int] | None:
        y = to + gap
        if y + _ANCHOR_BYTES > self.new_end:
            return None
        end = min(self.old_end, at + gap + window)
        self.budget -= end - at
        x = self.old.find(self.new_view[y : y + _ANCHOR_BYTES], at, end)
        return None if x < 0 else (x, y)


def apply_splices(part: bytearray, splices: Splices) -> None:
    """Carry the splices out on the bytes, in place."""
    if len(splices) % 3:
        raise Damaged("A stored patch is not whole.")
    at = 0
    for index in range(0, len(splices), 3):
        keep, delete, insert = splices[index : index + 3]
        if type(keep) is not int or type(delete) is not int or type(insert) is not bytes:
            raise Damaged("A stored patch is not made of splices.")
        at += keep
        if keep < 0 or delete < 0 or at + delete > len(part):
            raise Damaged("A stored patch does not fit the part it changes.")
        part[at : at + delete] = insert
        at += len(insert)


def _number(data: bytes) -> int:
    """The bytes as one number, the first the lowest."""
    return int.from_bytes(data, "little")
