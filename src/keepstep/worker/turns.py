"""Whose turn it is: workflows take turns, so that none of them keeps the others waiting, however much it has to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class Turns:
    """Who got least comes first; who wanted nothing has no claim to more later on."""

    def __init__(self, names: Sequence[str]) -> None:
        self._got = dict.fromkeys(names, 0)
        self._left = 0
        self._share = 0

    def shares(self, free: int, shy: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
        """Each name once, with how much it may take if all that come after it take as much; but for those in `shy`.

        `took` is told what it took before the next one comes.
        """
        names = sorted((name for name in self._got if name not in shy), key=self._got.__getitem__)
        self._left = free
        for place, name in enumerate(names):
            if self._left < 1:
                return
            self._share = -(-self._left // (len(names) - place))
            yield name, self._share

    def took(self, name: str, count: int) -> None:
        """A name took so much of its share."""
        self._left -= count
        self._got[name] += count
        if count < self._share:
            self._got[name] = max(self._got.values())
