"""What reading gives: plain frozen values, the same for sync and async handles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from keepstep.log.chain import Damage
from keepstep.log.records import TagValue

T = TypeVar("T")


class HolderLook(msgspec.Struct, frozen=True):
    """Who has a run now."""

    owner: str
    until: datetime
    stands: bool
    """False when the owner is dead or its lease has passed: the run may be taken over."""


class ParentLook(msgspec.Struct, frozen=True):
    """Where a fork came from."""

    run_id: str
    step: int
    seq: int


class RunHead(msgspec.Struct, frozen=True):
    """A run without its state: one line of a list."""

    run_id: str
    workflow: str
    status: str
    step: int | None
    next: str | None
    label: str | None
    tags: Mapping[str, TagValue]
    parent: ParentLook | None
    holder: HolderLook | None
    created: datetime
    changed: datetime
    """When the status last changed."""
    saved: datetime | None
    until: datetime | None
    """When a waiting run goes on by itself."""
    gates: Sequence[str]
    cancelling: bool
    """Somebody asked for it to be cancelled, and its holder has not done so yet."""
    line: int
    epoch: int
    incarnation: int
    deaths: int
    """How many owners died in it since its last new checkpoint."""
    seq: int
    digest: str
    """The end of its chain; keep it elsewhere, and `verify(expect=digest)` compares."""
    flow_version: str | None = None
    """The version of the flow that carries it; None when none does."""
    attempts: int = 0
    """How often the flow's next step has raised, and is tried again."""


class Look(RunHead, frozen=True):
    """A run with its state."""

    state: Any = None
    result: Any = None
    error: Mapping[str, Any] | None = None
    note: Any = None
    cancel: Mapping[str, Any] | None = None
    """The request to cancel it: `reason`, `by` and `at`, when it was made. It was granted when the status changed."""


class CheckpointHead(msgspec.Struct, frozen=True):
    """A checkpoint without its state: one line of a history."""

    seq: int
    step: int
    next: str | None
    label: str | None
    line: int
    at: datetime
    epoch: int
    parent_seq: int | None
    state_bytes: int
    """The state's size, encoded."""
    stored_bytes: int
    """What this checkpoint added to the store."""


class Checkpoint(CheckpointHead, frozen=True):
    """A checkpoint with its state."""

    run_id: str = ""
    workflow: str = ""
    version: int = 1
    state: Any = None


class PageOf(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list; pass `next` as `cursor` for the following part."""

    items: Sequence[T]
    next: str | None


class EffectLook(msgspec.Struct, frozen=True):
    """A call to the outside, as the ledger has it."""

    key: str
    """Its name, as it was given; or hex digits."""
    tool: str
    status: str
    """`began` (under way, or left so by a worker that died), `returned`, `raised` (it did not happen), `doubted`
    (nobody knows), `undone` and its kin."""
    target: str | None
    attempt: int
    step: int
    line: int
    epoch: int
    idempotency_key: str | None
    arguments: Any
    """[positional, by name]; None of a memo, of which only a digest is kept."""
    reversible: bool
    began: datetime
    ended: datetime | None
    result: Any = None
    error: Mapping[str, Any] | None = None
    is_memo: bool = False


class GateLook(msgspec.Struct, frozen=True):
    """A question to a person, open or over."""

    id: str
    run_id: str
    workflow: str
    about: str
    """`question`, `approval` (whether an effect may begin), `doubt` (whether it happened), or `deaths` (what is to
    become of a run that ended its workers)."""
    status: str
    """`open`, `answered` or `expired`."""
    prompt: str
    schema: Mapping[str, Any]
    """JSON Schema of the answer."""
    default: Any
    asked: datetime
    until: datetime | None
    details: Mapping[str, Any]
    """Of an approval or a doubt: the tool, its target and arguments; of a doubt its idempotency key and error too."""
    answer: Any = None
    by: str | None = None
    answered: datetime | None = None


class RollbackItem(msgspec.Struct, frozen=True):
    """One effect in a rollback."""

    key: str
    tool: str
    target: str | None
    began: datetime
    action: str
    """`undo`, `keep`, `cannot`, `doubt` (nobody knows whether it was undone), or `undone` (before it was cut off)."""
    why: str | None
    outcome: str | None = None
    """`undone` or `kept`, once it was carried out; in the report of one that stopped, also `failed` and `skipped`."""


class RollbackPlan(msgspec.Struct, frozen=True):
    """What a rollback would do, or has done: newest effect first."""

    run_id: str
    to_step: int
    to_seq: int
    items: Sequence[RollbackItem]

    @property
    def possible(self) -> bool:
        """Nothing stands against it."""
        return all(one.action in ("undo", "keep", "undone") for one in self.items)


class Outcome(msgspec.Struct, frozen=True):
    """How a run was left by `carry`: no exceptions to sort."""

    run_id: str
    status: str
    """The run's status; `deleted` when it was deleted on the way."""
    result: Any = None
    gates: Sequence[str] = ()
    until: datetime | None = None
    error: BaseException | None = None
    """What the function raised, or why the run could not be entered (held, cancelled)."""

    @property
    def finished(self) -> bool:
        """The run has its result."""
        return self.status == "finished"


class Verification(msgspec.Struct, frozen=True):
    """What `verify` found."""

    run_id: str
    records: int
    digest: str
    damage: Sequence[Damage]
    last_good: int | None
    """Seq of the newest checkpoint that can be read whole; `at(run_id, seq=...)` gives it."""

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not self.damage


class CopiedRun(msgspec.Struct, frozen=True):
    """What became of one run in `copy`."""

    run_id: str
    outcome: str
    """`copied`; `there` (it was before); `held` by an owner; or `refused`, and why."""
    records: int
    why: str | None


class CopyReport(msgspec.Struct, frozen=True):
    """What `copy` did."""

    copied: int
    there: int
    """Runs that had been copied before."""
    records: int
    """That were written."""
    left: Sequence[CopiedRun]
    """Runs that stay where they are, and why."""


class Size(msgspec.Struct, frozen=True):
    """What a run, or a whole store, weighs, in bytes."""

    total: int
    heads: int
    bodies: int
    records: int
    runs: int = 1
    state: int = 0
    """The newest state, encoded whole."""
    by_key: Mapping[str, int] = {}
    """The newest state's bytes by its keys, heaviest first."""
