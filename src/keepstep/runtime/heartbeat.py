"""The thread that keeps an owner's lease alive, whatever the rest of the process does."""

from __future__ import annotations

import threading
from collections.abc import Callable

from keepstep.errors import KeepstepError
from keepstep.runtime.clock import Clock
from keepstep.store.base import Renewal

BEATS_PER_LEASE = 3
"""Two beats may be missed before anybody takes a run over."""


class Heartbeat:
    """Renews the lease three times in its length, once per process however many runs it holds."""

    def __init__(
        self, renew: Callable[[], Renewal], heard: Callable[[Renewal], None], lease_seconds: float, clock: Clock
    ) -> None:
        self._renew = renew
        self._heard = heard
        self._seconds = lease_seconds / BEATS_PER_LEASE
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="keepstep heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the last beat."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _beat(self) -> None:
        seconds = self._seconds
        while not self._clock.wait(self._stop, seconds):
            try:
                renewal = self._renew()
            except KeepstepError:
                seconds = (
                    self._seconds / 5
                )  # the store cannot be reached: soon again; the claims' commits are the fence
                continue
            seconds = self._seconds
            self._heard(renewal)
