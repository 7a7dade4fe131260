"""What a store does: append records to one run if its log still ends where the writer thinks, and read them back.

Every method is one transaction. They are all `async def`; a blocking store never suspends in them, so that sync
handles can drive them inline. A store imports no rule: whoever is not the holder hands in a *decision*, a pure
function that the store calls inside the transaction with the run's row locked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from keepstep.errors import KeepstepError
from keepstep.log.chain import Stored
from keepstep.log.fold import Fields, Fold
from keepstep.log.ledger import LedgerEntry
from keepstep.log.records import TagValue


class Holder(NamedTuple):
    """The owner named in a running run's row, as the store sees it now."""

    owner: str
    until_us: int
    stands: bool
    """False when its lease has passed, or when its process is known to be gone."""


class View(NamedTuple):
    """All that a decision may know: one run, now. `row` is None when there is no such run."""

    run_id: str
    row: Fold | None
    holder: Holder | None
    """Set while the run is running."""
    buried: tuple[int, int]
    """(incarnation, epoch) of the tombstone that a deleted run left; (0, 0) when there is none."""
    now_us: int


class Append(NamedTuple):
    """Records for one run, prepared: numbered, chained, and with the row they lead to."""

    run_id: str
    after_seq: int
    """The log must still end here; 0 creates the run."""
    after_digest: bytes
    records: Sequence[Stored]
    row: Fields
    """The row as it will be. It may be changed by its writer once `commit` has returned, so a store keeps a copy."""
    ledger: Sequence[LedgerEntry] = ()
    moved: bool = True
    """False when only seq, digest and the row's blob differ: no column that lists are searched by has changed."""
    dropped: Sequence[tuple[int, int]] = ()
    """Ranges of seqs whose bodies go, in the same transaction."""
    renewed: Sequence[tuple[int, bytes]] = ()
    """Bodies stored anew, in the same transaction."""
    urgent: bool = True
    """False when it need not outlive a loss of power: without it, the run is as well off. A store may go without
    waiting for the disk then; whatever is written after it takes it along."""


class Decision(NamedTuple):
    """A pure function of the run and the store's time. It returns what to append (None: nothing), or raises."""

    run_id: str
    decide: Callable[[View], Append | None]


class Committed(NamedTuple):
    """It is durable. `append` is what was written; None when a decision found nothing to write."""

    append: Append | None
    now_us: int


class Conflict(NamedTuple):
    """The log no longer ends there (or the run exists already); nothing was written."""


class Gone(NamedTuple):
    """The run was deleted; nothing was written."""


class Refused(NamedTuple):
    """The decision said no; nothing was written."""

    error: KeepstepError


class Busy(NamedTuple):
    """The run is locked elsewhere; nothing was written; it goes alone in the next round."""


Outcome = Committed | Conflict | Gone | Refused | Busy
Entry = Append | Decision

Order = Literal["created", "changed", "asking"]


class Query(NamedTuple):
    """Which runs to list."""

    workflow: str | None = None
    status: tuple[str, ...] = ()
    """Any of these; all when empty."""
    tags: Mapping[str, TagValue] = {}
    """All of these."""
    parent: str | None = None
    """Only forks of this run."""
    starts_with: str = ""
    """Only ids that begin so."""
    order: Order = "created"
    """By when it was created, or when its status last changed. By `asking`, only runs with an open gate are listed,
    whatever their status, by when the oldest of their open gates was asked. Runs of the same moment: by id."""
    newest_first: bool = True
    due: bool = False
    """Only runs that a worker may claim now: ready; sleeping or paused and due; running under an owner that is gone."""


class Row(NamedTuple):
    """A run in a list."""

    run_id: str
    fold: Fold
    holder: Holder | None


class Page(NamedTuple):
    """A part of a list; `next` is where the following part begins, None at the end."""

    rows: Sequence[Row]
    next: str | None


class Renewal(NamedTuple):
    """What a heartbeat learns. `held`: run id → (seq, epoch) of every run whose row names this owner."""

    stands: bool
    now_us: int
    held: Mapping[str, tuple[int, int]]


class Weight(NamedTuple):
    """What is stored. For a whole store, `file_bytes` counts what its files take on the disk."""

    runs: int
    records: int
    head_bytes: int
    body_bytes: int
    file_bytes: int


class Store(Protocol):
    """Where runs live."""

    url: str
    """For messages: never holds a password."""
    read_only: bool
    blocking: bool
    """True when its methods do their work in the calling thread and never suspend."""

    async def open(self) -> None:
        """Connect, and create what is missing. Raises `CannotOpen` and its kin."""
        ...

    async def commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        """Write many runs' entries in one durable transaction; each outcome stands on its own.

        Entries of one run are taken in order. Raises when the batch failed as a whole: after `StoreFailed` nobody knows
        whether it was written (the batch ids tell), after `StoreBusy`, `StoreFull` and `ReadOnly` it was not.
        """
        ...

    async def view(self, run_id: str) -> View:
        """One run, now."""
        ...

    async def records(
        self,
        run_id: str,
        *,
        after: int = 0,
        until: int | None = None,
        bodies: bool = True,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Stored]:
        """The records with after < seq <= until, in order of seq."""
        ...

    async def pick(self, run_id: str, seqs: Sequence[int]) -> list[Stored]:
        """The records with these seqs, with their bodies, in order of seq; those that are not there are left out."""
        ...

    async def effects(self, run_id: str, keys: Sequence[bytes] | None = None) -> list[LedgerEntry]:
        """What the ledger index has under these keys; all of it, in order of beginning, when keys is None."""
        ...

    async def rows(self, query: Query, cursor: str | None, limit: int) -> Page:
        """A page of runs. `BadInput` when the cursor is not one of this store's."""
        ...

    async def claim(
        self, workflows: Sequence[str] | None, limit: int, decide: Callable[[View], Append | None]
    ) -> list[Committed]:
        """Find due runs (any workflow when None), oldest change first, and decide each, in one transaction.

        A decision that raises or returns None passes its run over.
        """
        ...

    async def delete(self, run_id: str, decide: Callable[[View], None]) -> bool:
        """Erase a run and leave its tombstone, unless `decide` raises. False when there was none."""
        ...

    async def enlist(self, owner: str, seconds: float) -> None:
        """Make this process's owner known, with a lease, and an OS lock where the store has one."""
        ...

    async def renew(self, owner: str, seconds: float) -> Renewal:
        """Prolong the lease. May be called from a thread of its own, beside everything else."""
        ...

    async def retire(self, owner: str) -> None:
        """The owner leaves in good order: its lease and lock go. Twice is fine."""
        ...

    async def changes(self, seen: int | None, seconds: float) -> int:
        """A number that differs from `seen` once something has changed; waits for that at most so long."""
        ...

    async def now(self) -> int:
        """The store's time, in microseconds since 1970."""
        ...

    async def size(self, run_id: str | None) -> Weight:
        """What a run weighs, or the whole store."""
        ...

    async def backup(self, target: str) -> None:
        """Write a consistent copy of the whole store to a new place."""
        ...

    def after_fork(self) -> None:
        """Called in a forked child: forget connections and locks without touching what the parent has."""
        ...

    async def close(self) -> None:
        """Let go of everything. Twice is fine."""
        ...
