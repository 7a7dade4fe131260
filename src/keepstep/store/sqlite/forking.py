"""What happens to the open stores of a process around a fork.

Before a fork every connection is closed, and made anew when next needed, in the parent as in the child. This is not
tidiness: SQLite notes in the process's memory which locks it holds on a file. A child would believe that note, but
locks are not inherited; it would write without any (seen in /proc/locks), and could lose the log to somebody who
takes himself for the last one out. Starting a program with `subprocess` is no such fork and closes nothing.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something that has to be at rest while its process forks."""

    def rest(self) -> None:
        """Before: wait for the calls under way, and let nobody in."""
        ...

    def wake(self) -> None:
        """After, in the parent: go on."""
        ...

    def after_fork(self) -> None:
        """After, in the child: forget what is the parent's."""
        ...


class _Forks:
    """All that is at rest while this process forks."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._living: weakref.WeakSet[Forkable] = weakref.WeakSet()
        self._resting: list[Forkable] = []

    def watch(self, one: Forkable) -> None:
        with self._mutex:
            self._living.add(one)

    def before(self) -> None:
        self._mutex.acquire()
        self._resting = list(self._living)
        for one in self._resting:
            one.rest()

    def in_parent(self) -> None:
        resting, self._resting = self._resting, []
        for one in resting:
            one.wake()
        self._mutex.release()

    def in_child(self) -> None:
        self._mutex = threading.Lock()
        resting, self._resting = self._resting, []
        for one in resting:
            one.after_fork()


_forks = _Forks()
watch_forks = _forks.watch

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forks.before, after_in_parent=_forks.in_parent, after_in_child=_forks.in_child)
