"""Going through a story once for every point at which it can be struck."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import keepstep
from tests.places import Place

POINTS_MAX = 500
"""No story has so many; one that never ends is found out."""


def at_every_point(where: str, folder: Path, go: Callable[[Place, int], bool], least: int) -> None:
    """Call `go` with each point in turn, each time in a new place, until it says that nothing was struck any more."""
    kind, mode = where.split("-")
    for at in count(1):
        assert at < POINTS_MAX
        room = folder / str(at)
        room.mkdir()
        place = Place(kind, mode, room)
        try:
            struck = go(place, at)
        except (AssertionError, keepstep.KeepstepError) as error:
            error.add_note(f"at {at}")
            raise
        finally:
            place.close()
        if not struck:
            assert at > least, "the story does nothing that could fail"
            return
