"""Every error keepstep raises.

    KeepstepError
    ├── BadInput (ValueError)         an argument is wrong; nothing was written
    │   ├── CannotStore               a value has no stored form; says where in the value
    │   ├── TooLarge                  over a limit; says which
    │   └── WrongUse                  the right call in the wrong place (closed handle, child process, wrong handle)
    ├── RunError                      about one run; has .run_id
    │   ├── NoSuchRun                 no run of that id; has .near
    │   ├── NoSuchCheckpoint          the run has no such step, seq or label
    │   ├── WrongWorkflow             the run belongs to another workflow
    │   ├── NothingToDo               the run cannot be entered
    │   │   ├── RunFinished           has .result
    │   │   ├── RunCancelled
    │   │   ├── RunWaiting            has .gates and .until
    │   │   └── RunHeld               has .owner and .until
    │   ├── NotAllowed                the run's status does not allow it
    │   ├── ClaimLost                 another owner has the run now; this handle cannot write any more
    │   ├── RunGone                   the run was deleted meanwhile
    │   ├── RunExists                 a fork's id is taken by something else
    │   └── StateMismatch             the stored state does not fit the type or version asked for
    └── StoreError                    about the store as a whole
        ├── CannotOpen                no such place, no permission, unknown URL, network file system
        │   ├── NotAStore             the file is something else
        │   └── NewerFormat           written by a newer keepstep
        ├── ReadOnly                  a write on a store opened for reading
        ├── StoreBusy                 others kept the store locked too long
        ├── StoreFull                 no space left; nothing was written
        ├── StoreFailed               the operating system or the database refused
        └── Damaged                   stored bytes are not what was written

    Stop (BaseException)              raise it in a run's block to leave the run `ready` for later

A message says what happened, to which run, and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SHOWN_CHARS_MAX = 200
"""A message is read by people; a whole document in it hides what it says."""


def shown(value: object) -> str:
    """A value of the user's as a message shows it: cut when it is long, and by its class when it cannot be shown."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a repr that fails must not hide what is wrong with the value
        return f"<{type(value).__name__}>"
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}..."


class KeepstepError(Exception):
    """Base of every error of keepstep."""


class BadInput(KeepstepError, ValueError):
    """An argument is wrong; nothing was written."""


class CannotStore(BadInput):
    """A value has no stored form."""


class TooLarge(BadInput):
    """Something is over a limit."""


class WrongUse(BadInput):
    """The call is right, the place is not."""


class RunError(KeepstepError):
    """Something about one run."""

    def __init__(self, message: str, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class NoSuchRun(RunError):
    """There is no run of that id."""

    def __init__(self, run_id: str, near: Sequence[str] = ()) -> None:
        hint = f" Near it: {', '.join(repr(one) for one in near)}." if near else ""
        super().__init__(f"There is no run {run_id!r}.{hint} Pass workflow= to store.run() to create it.", run_id)
        self.near = tuple(near)


class NoSuchCheckpoint(RunError):
    """The run has no such step, seq or label."""


class WrongWorkflow(RunError):
    """The run belongs to another workflow."""

    def __init__(self, run_id: str, has: str, asked: str) -> None:
        super().__init__(
            f"Run {run_id!r} belongs to workflow {has!r}, not {asked!r}. Use another id, or leave workflow= out.",
            run_id,
        )
        self.has = has
        self.asked = asked


class NothingToDo(RunError):
    """The run cannot be entered; nothing was claimed."""


class RunFinished(NothingToDo):
    """The run has ended; its result is in `.result`."""

    def __init__(self, run_id: str, result: Any = None) -> None:
        super().__init__(
            f"Run {run_id!r} is finished; its result is in .result. To run it again, use another id or fork it.",
            run_id,
        )
        self.result = result


class RunCancelled(NothingToDo):
    """The run was cancelled."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id!r} was cancelled. Fork it, or start another under a new id.", run_id)


class RunWaiting(NothingToDo):
    """The run waits: for answers (`.gates`), or until a time (`.until`, a datetime)."""

    def __init__(self, run_id: str, gates: Sequence[str] = (), until: Any = None) -> None:
        waits = f"{len(gates)} open gate(s)" if gates else f"a time or a message, until {until}"
        super().__init__(f"Run {run_id!r} waits for {waits}; it goes on by itself after that.", run_id)
        self.gates = tuple(gates)
        self.until = until


class RunHeld(NothingToDo):
    """Another owner has the run; `.until` is when its lease ends unless renewed."""

    def __init__(self, run_id: str, owner: str, until: Any = None) -> None:
        super().__init__(
            f"Run {run_id!r} is held by {owner} (lease until {until}). Wait for it with wait='1m', or leave it.",
            run_id,
        )
        self.owner = owner
        self.until = until


class NotAllowed(RunError):
    """The run's status does not allow it."""


class ClaimLost(RunError):
    """Another owner has the run now; nothing of this handle is written any more."""

    def __init__(self, run_id: str, why: str = "another owner claimed it") -> None:
        super().__init__(
            f"The claim on run {run_id!r} is lost: {why}. What was saved before stands; open the run again to go on.",
            run_id,
        )


class RunGone(RunError):
    """The run was deleted meanwhile."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id!r} was deleted meanwhile; nothing was written.", run_id)


class RunExists(RunError):
    """The id is taken by something else."""


class StateMismatch(RunError):
    """The stored state does not fit the type or version asked for."""


class StoreError(KeepstepError):
    """Something about the store as a whole."""


class CannotOpen(StoreError):
    """The store cannot be opened."""


class NotAStore(CannotOpen):
    """The file or folder holds something else."""


class NewerFormat(CannotOpen):
    """The store was written by a newer keepstep."""


class ReadOnly(StoreError):
    """A write was tried on a store opened for reading."""


class StoreBusy(StoreError):
    """Others kept the store locked too long; nothing was written."""


class StoreFull(StoreError):
    """No space is left; nothing was written."""


class StoreFailed(StoreError):
    """The operating system or the database refused."""


class Damaged(StoreError):
    """Stored bytes are not what was written."""


class Stop(BaseException):
    """Raise it in a run's block to leave the run `ready`: it is an interruption, not a failure."""
