"""The thread that keeps an owner's lease alive, whatever the rest of the process does."""

from __future__ import annotations

import threading
from collections.abc import Callable

from keepstep.runtime.clock import Clock
from keepstep.store.base import Renewal

BEATS_PER_LEASE = 3
"""Two beats may be missed before anybody takes a run over."""

BEATS_AFTER_FAILURE = 5
"""While the store cannot be reached, as many beats are tried in the time of one."""


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
            begin_us = self._clock.now_us()
            try:
                self._heard(self._renew())
            except Exception:  # noqa: BLE001 - whatever it was, a heart that stops loses every run of the process
                seconds = self._seconds / BEATS_AFTER_FAILURE
            else:
                # The lease counts from the beginning of the beat, however long the store took for it.
                seconds = max(0.0, self._seconds - (self._clock.now_us() - begin_us) / 1e6)
