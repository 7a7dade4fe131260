"""What the ledger knows about an effect: how it began, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from keepstep.engine.bodies import checked, damaged, from_body
from keepstep.engine.context import Engine
from keepstep.errors import CannotStore, RunGone, shown
from keepstep.log.chain import Stored
from keepstep.log.ledger import LedgerEntry
from keepstep.log.records import AnyRecord, Began, Inherited, Returned, Settled

Body = dict[str, Any]


@dataclass(frozen=True)
class Past:
    """One line of the ledger, with the records that it names."""

    entry: LedgerEntry
    began: AnyRecord
    began_body: Body
    ended: AnyRecord | None
    ended_body: Body

    @property
    def is_done(self) -> bool:
        """It happened, and its result is here."""
        match self.ended:
            case Returned():
                return True
            case Settled():
                return self.ended.happened
            case Inherited():
                return self.ended.outcome == "returned"
            case _:
                return False

    @property
    def is_unknown(self) -> bool:
        """It began, and nobody knows how it went."""
        return self.entry.how in ("began", "doubted") or (self.entry.how == "inherited" and not self.is_done)

    @property
    def is_free(self) -> bool:
        """It may be started: it did not happen, or it was undone."""
        return not self.is_done and self.entry.how in ("raised", "settled", "undone")

    @property
    def is_alias(self) -> bool:
        """It never began itself: it is in doubt with another call that is the same."""
        return getattr(self.began, "key", self.entry.key) != self.entry.key

    @property
    def name(self) -> str:
        """The key as people read it."""
        if self.is_alias:
            return self.ended_body.get("key") or self.entry.key.hex()
        return self.began_body.get("key") or self.entry.key.hex()

    @property
    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """What it was called with; nothing for a memo, of which only a digest is kept."""
        args, kwargs = cast("tuple[list[Any], dict[str, Any]]", self.began_body.get("arguments") or ([], {}))
        return args, kwargs

    @property
    def attempt(self) -> int:
        """Which attempt it was."""
        return self.began.attempt if isinstance(self.began, Began) else 1

    @property
    def shown(self) -> str:
        """The call as a person reads it."""
        args, kwargs = self.arguments
        given = [shown(one) for one in args] + [f"{name}={shown(one)}" for name, one in kwargs.items()]
        return f"{getattr(self.began, 'tool', '')}({', '.join(given)})"

    def value(self) -> Any:
        """The result; raises if it could not be stored."""
        if "lost" in self.ended_body:
            raise CannotStore(f"{self.shown} happened, and its result could not be stored: {self.ended_body['lost']}")
        return self.ended_body.get("result")


async def past_of(engine: Engine, run_id: str, key: bytes, arguments: bytes | None = None) -> Past | None:
    """What is known under a key; None when nothing is.

    A result that came of these arguments says all that is needed: how it began is not read then.
    """
    found = await engine.store.effects(run_id, [key])
    if not found:
        return None
    [entry] = found
    if arguments is not None and entry.how == "returned":
        for stored in await engine.store.pick(run_id, [entry.ended]):
            record, body = _record(engine, run_id, stored)
            if isinstance(record, Returned) and record.arguments == arguments:
                return Past(entry, record, body, record, body)
    return next(iter(await read(engine, run_id, found)), None)


async def written_past(engine: Engine, run_id: str, key: bytes) -> Past:
    """What is known under a key that was written; raises `RunGone` when the run was deleted since."""
    past = await past_of(engine, run_id, key)
    if past is None:
        raise RunGone(run_id)
    return past


async def real_of(engine: Engine, run_id: str, past: Past) -> Past:
    """What this one is in doubt with; itself, when it began itself."""
    if not past.is_alias:
        return past
    return await written_past(engine, run_id, getattr(past.began, "key", b""))


async def read(engine: Engine, run_id: str, entries: Sequence[LedgerEntry]) -> list[Past]:
    """The records that these lines of the ledger name; nothing when the run was deleted meanwhile."""
    seqs = sorted({seq for one in entries for seq in (one.began, one.ended) if seq})
    stored = {one.seq: one for one in await engine.store.pick(run_id, seqs)}
    missing = [seq for seq in seqs if seq not in stored]
    if missing:
        row = (await engine.store.view(run_id)).row
        if row is not None and row.seq >= missing[-1]:
            raise damaged(run_id, missing[0], "It is missing.")
        return []
    return [
        Past(
            one,
            *_record(engine, run_id, stored[one.began]),
            *(_record(engine, run_id, stored[one.ended]) if one.ended else (None, {})),
        )
        for one in entries
    ]


def _record(engine: Engine, run_id: str, one: Stored) -> tuple[AnyRecord, Body]:
    record = checked(run_id, one)
    return record, {} if one.body is None else cast(Body, from_body(engine, one.body))
