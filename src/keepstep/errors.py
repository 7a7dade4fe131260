"""Every error keepstep raises.

    KeepstepError
    ├── BadInput (ValueError)         an argument is wrong; nothing was written
    │   ├── CannotStore               a value has no stored form; says where in the value
    │   ├── InvalidAnswer             an answer does not fit the fields that were asked for; has .problems
    │   ├── TooLarge                  over a limit; says which
    │   └── WrongUse                  the right call in the wrong place (closed handle, child process, wrong handle)
    │       └── KeyNeeded             equal calls at the same time need keys to be told apart
    ├── RunError                      about one run; has .run_id
    │   ├── NoSuchRun                 no run of that id; has .near
    │   ├── NoSuchCheckpoint          the run has no such step, seq or label
    │   ├── WrongWorkflow             the run belongs to another workflow
    │   ├── NothingToDo               the run cannot be entered
    │   │   ├── RunFinished           has .result
    │   │   ├── RunCancelled          has .reason and .by
    │   │   ├── RunWaiting            has .gates and .until
    │   │   └── RunHeld               has .owner and .until
    │   ├── NotAllowed                the run's status does not allow it
    │   ├── ClaimLost                 another owner has the run now; this handle cannot write any more
    │   ├── RunGone                   the run was deleted meanwhile
    │   ├── RunExists                 a fork's id is taken by something else
    │   ├── EffectError               about one effect of a run; has .key
    │   │   ├── EffectInDoubt         nobody knows whether it happened; has .call
    │   │   ├── Rejected              its approval was refused; has .by and .note
    │   │   ├── UndoFailed            an undo raised, and the rollback stopped; has .in_doubt and .report
    │   │   ├── LeaseTooShort         less of the lease is left than the tool needs; it was not started
    │   │   ├── EffectInFlight        the same effect is under way in another thread or task
    │   │   ├── ArgumentsChanged      it is in the ledger with other arguments
    │   │   └── NotInDoubt            there is nothing to settle
    │   ├── GateError                 about one gate; has .gate
    │   │   ├── NoSuchGate            no gate of that id
    │   │   ├── AlreadyAnswered       somebody was first; has .by and .at
    │   │   └── GateExpired           its deadline passed, and it has no default
    │   ├── RollbackRefused           something stands against it; has .hinders; nothing was done
    │   ├── RollbackUnderWay          a rollback was cut off; call it again
    │   ├── TimedOut                  no message came in time; has .name
    │   ├── NoSuchStep                a flow was told to go to a step that it does not have; has .step and .steps
    │   ├── StepTimedOut              a step took longer than its timeout; has .step
    │   ├── TooManySteps              a flow took more steps than its max_steps
    │   ├── TooManyDeaths             the run ended its worker again and again without a new checkpoint
    │   ├── WrongVersion              the run is of a version of its flow that is not here; has .has and .knows
    │   ├── RunFailed                 the run that is waited for has failed; has .type and .error
    │   ├── ResultTimedOut            the run that is waited for has not ended yet; has .status, .gates and .until
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

    NotDone (Exception)               raise it in a tool: what it was called for has not happened
    Pause (BaseException)             the run waits: leaves the block by itself; nothing to catch
    Cancelled (BaseException)         the run was asked to stop: leaves the block like Pause; has .reason and .by
    Stop (BaseException)              raise it in a run's block to leave the run `ready` for later

A message says what happened, to which run, and what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def _who_and_why(reason: str | None, by: str | None) -> str:
    who = "" if by is None else f" by {by}"
    return who if reason is None else f"{who} ({reason})"


class KeepstepError(Exception):
    """Base of every error of keepstep."""


class BadInput(KeepstepError, ValueError):
    """An argument is wrong; nothing was written."""


class CannotStore(BadInput):
    """A value has no stored form."""


class InvalidAnswer(BadInput):
    """An answer does not fit the fields that were asked for; nothing was written."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        told = ". ".join(f"{name or 'It'} {problem}" for name, problem in problems.items())
        super().__init__(f"The answer does not fit; nothing was written. {told}.")
        self.problems: Mapping[str, str] = dict(problems)  # by the field's name; "" is the answer as a whole


class TooLarge(BadInput):
    """Something is over a limit."""


class WrongUse(BadInput):
    """The call is right, the place is not."""


class KeyNeeded(WrongUse):
    """Equal calls at the same time cannot be told apart."""


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
    """The run was cancelled; `.reason` and `.by` say why and by whom, if that was said."""

    def __init__(self, run_id: str, reason: str | None = None, by: str | None = None) -> None:
        told = _who_and_why(reason, by)
        super().__init__(f"Run {run_id!r} was cancelled{told}. Fork it, or start another under a new id.", run_id)
        self.reason = reason
        self.by = by


class RunWaiting(NothingToDo):
    """The run waits: for answers (`.gates`), or until a time (`.until`, a datetime)."""

    def __init__(self, run_id: str, gates: Sequence[str] = (), until: Any = None) -> None:
        other = "a message" if until is None else f"a time or a message, until {until}"
        waits = f"{len(gates)} open gate(s)" if gates else other
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


class EffectError(RunError):
    """Something about one effect of a run."""

    def __init__(self, message: str, run_id: str, key: str) -> None:
        super().__init__(message, run_id)
        self.key = key


class EffectInDoubt(EffectError):
    """Nobody knows whether an effect happened, so it is not started again."""

    def __init__(self, run_id: str, key: str, call: str) -> None:
        super().__init__(
            f"Nobody knows whether {call} happened in run {run_id!r}. Find out, and tell with "
            f"store.settle({run_id!r}, {key!r}, happened=..., result=...); then open the run again. A tool that can be "
            "asked says so with reconcile=, one that may be called again with idempotent=True.",
            run_id,
            key,
        )
        self.call = call


class Rejected(EffectError):
    """Somebody said no to an effect."""

    def __init__(self, run_id: str, key: str, call: str, by: str | None, note: str | None) -> None:
        who = "nobody in time" if by is None else by
        why = "" if note is None else f": {note}"
        super().__init__(f"{call} in run {run_id!r} was not approved ({who}){why}.", run_id, key)
        self.by = by
        self.note = note


class UndoFailed(EffectError):
    """An undo raised, and the rollback stopped there. What was undone before stays undone.

    `.report` says of every effect how it stands: `undone`, `kept`, `failed`, or `skipped` when it was not tried.
    """

    def __init__(self, run_id: str, key: str, call: str, *, in_doubt: bool) -> None:
        if in_doubt:
            hint = (
                f"Nobody knows whether it was undone: find out, and call rollback with undone=[{key!r}] or "
                f"not_undone=[{key!r}]; or leave it as it is with keep=[{key!r}]."
            )
        else:
            hint = "Call rollback again: it goes on from there."
        super().__init__(f"{call} in run {run_id!r} could not be undone. {hint}", run_id, key)
        self.in_doubt = in_doubt
        self.report: Any = None


class LeaseTooShort(EffectError):
    """Less of the lease is left than a tool needs; it was not started."""

    def __init__(self, run_id: str, tool: str, left: float, least: float) -> None:
        super().__init__(
            f"{left:.1f} s of the lease on run {run_id!r} are left, and {tool} needs {least:g} (min_lease=). Open the "
            "store with a longer lease=, or find out what keeps its heartbeat from the store.",
            run_id,
            tool,
        )


class EffectInFlight(EffectError):
    """The same effect is under way in another thread or task of this run."""

    def __init__(self, run_id: str, key: str, call: str) -> None:
        super().__init__(
            f"{call} is under way in run {run_id!r} already, under the same key {key!r}. Give each call its own key.",
            run_id,
            key,
        )


class ArgumentsChanged(EffectError):
    """An effect comes with other arguments than it began with."""

    def __init__(self, run_id: str, key: str, before: str, now: str) -> None:
        super().__init__(
            f"In run {run_id!r} the effect {key!r} was {before}, and now it is {now}. It is not repeated with other "
            "arguments, nor is the old result passed off as theirs: give another key, or the same arguments.",
            run_id,
            key,
        )
        self.before = before
        self.now = now


class NotInDoubt(EffectError):
    """There is nothing to settle."""

    def __init__(self, run_id: str, key: str, status: str) -> None:
        super().__init__(
            f"The effect {key!r} of run {run_id!r} is {status}, so there is nothing to settle.", run_id, key
        )
        self.status = status


class GateError(RunError):
    """Something about one gate."""

    def __init__(self, message: str, run_id: str, gate: str) -> None:
        super().__init__(message, run_id)
        self.gate = gate


class NoSuchGate(GateError):
    """There is no gate of that id, or its run has ended without an answer."""

    def __init__(self, gate: str, run_id: str) -> None:
        super().__init__(f"Run {run_id!r} has no open gate {gate!r}; store.inbox() lists what is open.", run_id, gate)


class AlreadyAnswered(GateError):
    """Somebody was first."""

    def __init__(self, run_id: str, gate: str, by: str | None, at: Any) -> None:
        who = "somebody" if by is None else by
        super().__init__(f"The gate {gate!r} of run {run_id!r} was answered by {who} at {at}.", run_id, gate)
        self.by = by
        self.at = at


class GateExpired(GateError):
    """The deadline passed before anybody answered, and there is no default."""

    def __init__(self, run_id: str, gate: str) -> None:
        super().__init__(f"The gate {gate!r} of run {run_id!r} expired before it was answered.", run_id, gate)


class RollbackRefused(RunError):
    """Something stands against a rollback; nothing was done."""

    def __init__(self, run_id: str, step: int, hinders: Sequence[tuple[str, str, str]]) -> None:
        told = "; ".join(f"{tool} ({key}): {why}" for key, tool, why in hinders)
        super().__init__(f"Run {run_id!r} cannot go back to step {step}: {told}.", run_id)
        self.hinders = tuple(hinders)


class RollbackUnderWay(RunError):
    """A rollback was cut off, and has to come to its end before the run is entered."""

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"A rollback of run {run_id!r} has begun and was cut off. Call store.rollback() again: it goes on.", run_id
        )


class TimedOut(RunError):
    """No message came in time."""

    def __init__(self, run_id: str, name: str) -> None:
        super().__init__(f"Run {run_id!r} waited for a message {name!r}, and none came in time.", run_id)
        self.name = name


class NoSuchStep(RunError):
    """A flow was told to go to a step that it does not have."""

    def __init__(self, run_id: str, flow: str, step: object, steps: Sequence[str]) -> None:
        super().__init__(
            f"Run {run_id!r} was to go on with {shown(step)}, which is no step of flow {flow!r}. Its steps are "
            f"{', '.join(steps)}; a step returns one of these names (or its function), run.finish(value) or None.",
            run_id,
        )
        self.step = step
        self.steps = tuple(steps)


class StepTimedOut(RunError):
    """A step took longer than its timeout."""

    def __init__(self, run_id: str, step: str, seconds: float) -> None:
        super().__init__(f"Step {step!r} of run {run_id!r} took longer than its timeout of {seconds:g} s.", run_id)
        self.step = step


class TooManySteps(RunError):
    """A flow took more steps than it may."""

    def __init__(self, run_id: str, flow: str, most: int) -> None:
        super().__init__(
            f"Run {run_id!r} has taken {most} steps, the most that flow {flow!r} allows (max_steps). If it does not go "
            "in circles, allow more, and bring it back with store.reopen().",
            run_id,
        )


class TooManyDeaths(RunError):
    """A run ended its worker again and again."""

    def __init__(self, run_id: str, step: str | None, deaths: int) -> None:
        super().__init__(
            f"Run {run_id!r} ended its worker {deaths} times in step {step!r} without a new checkpoint. Find out what "
            "ends the process there (memory, a native library, a time limit), then bring it back with store.reopen().",
            run_id,
        )


class WrongVersion(RunError):
    """The run is of a version of its flow that is not here."""

    def __init__(self, run_id: str, flow: str, has: str, knows: Sequence[str]) -> None:
        super().__init__(
            f"Run {run_id!r} is of version {has!r} of flow {flow!r}; here is {', '.join(map(repr, knows))}. Carry it "
            f"with code of that version, or lift it with @flow.migrate(from_version={has!r}).",
            run_id,
        )
        self.has = has
        self.knows = tuple(knows)


class RunFailed(RunError):
    """The run that is waited for has failed."""

    def __init__(self, run_id: str, error: Mapping[str, Any]) -> None:
        super().__init__(
            f"Run {run_id!r} failed: {error.get('type', 'an error')}: {error.get('message', '')} "
            "(its traceback is in .error). When the cause is mended, store.reopen() brings it back.",
            run_id,
        )
        self.type: str = error.get("type", "")
        self.error: Mapping[str, Any] = dict(error)


class ResultTimedOut(RunError):
    """The run that is waited for has not ended yet."""

    def __init__(self, run_id: str, status: str, gates: Sequence[str] = (), until: Any = None) -> None:
        if gates:
            waits = f" and waits for an answer to {', '.join(map(repr, gates))}: see store.gate() and store.answer()"
        elif status == "ready":
            waits = ": is there a worker for its workflow?"
        else:
            waits = "" if until is None else f" until {until}"
        super().__init__(f"Run {run_id!r} has not ended in time; it is {status}{waits}.", run_id)
        self.status = status
        self.gates = tuple(gates)
        self.until = until


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


class NotDone(Exception):
    """Raise it in a tool when what it was called for has certainly not happened: it may be called again."""


class Pause(BaseException):
    """A run has to wait for an answer: it leaves its block, and is paused."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id!r} waits. It leaves its block by itself; let this pass.")
        self.run_id = run_id


class Cancelled(BaseException):
    """Somebody asked for the run to be cancelled: it leaves its block, and is cancelled."""

    def __init__(self, run_id: str, reason: str | None = None, by: str | None = None) -> None:
        told = _who_and_why(reason, by)
        super().__init__(f"Run {run_id!r} is cancelled{told}. It leaves its block by itself; let this pass.")
        self.run_id = run_id
        self.reason = reason
        self.by = by


class Stop(BaseException):
    """Raise it in a run's block to leave the run `ready`: it is an interruption, not a failure."""
