"""Memory: what saving a large state takes at its peak, over the state's encoded size."""

from __future__ import annotations

import ctypes
import gc
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.conversation import turn
from benchmarks.row import Row, at_most
from benchmarks.setting import Setting
from benchmarks.words import message

STATE_BYTES = 10_000_000


def rows(setting: Setting) -> Iterator[Row]:
    """For the first save, which stores all of it, and for the next, which has the one before to compare with."""
    if not _can_measure():
        return
    found = setting.rounds(1, peaks, size=STATE_BYTES)[0]
    for what, above in (("first save", found["first"]), ("save after one change", found["changed"])):
        yield Row(
            f"memory for the {what} of a 10 MB state, at its peak",
            f"{above / 1e6:.0f} MB above the base",
            above / found["encoded"],
            "times",
            at_most(5),
        )


def peaks(folder: str, size: int) -> dict[str, float]:
    """How many bytes each save took above what there was before it."""
    import keepstep

    warnings.simplefilter("ignore", keepstep.LargeStateWarning)
    path = Path(folder) / "runs.db"
    texts = [message(number) for number in range(500)]  # long states repeat themselves; what is counted is bytes
    state: dict[str, Any] = {"messages": [turn(n, f"{n} {texts[n % 500]}") for n in range(size // 1100)], "turn": 0}
    with keepstep.open(path) as store:
        store.save("small", {"turn": 0}, workflow="large")  # everything is imported and connected
        first = _peak_of(lambda: store.save("large", state, workflow="large"))
        state["messages"].append(turn(0, texts[0]))
        state["turn"] = 1
        changed = _peak_of(lambda: store.save("large", state, workflow="large"))
    with keepstep.open(path) as store:
        found = store.load("large")
    assert found is not None, "the state is not there"
    assert found.state == state, "the state does not read back"
    return {"first": first, "changed": changed, "encoded": len(msgspec.msgpack.encode(state))}


def _can_measure() -> bool:
    return Path("/proc/self/clear_refs").exists()


def _peak_of(work: Any) -> int:
    """The highest resident memory while it works, above what it was before."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # or free memory kept by the C library would hide some of it
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    work()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
