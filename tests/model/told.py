"""What a store answers, in the form in which the plain store tells it; and all that a store holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import keepstep
from keepstep.testing import SimulatedCrash
from tests.crash.plain_model import Kept, picture
from tests.model.plain_runs import Log
from tests.model.values import exact

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Names = Mapping[str, int]
"""Owner's id → its number."""


class Raised(NamedTuple):
    """An error that a call answered with."""

    kind: type[BaseException]
    told: str = ""


def outcome(work: Callable[[], Any]) -> Any:
    """What a call gives, exactly, or what it raises. Any other error is nobody's answer."""
    try:
        return exact(work())
    except keepstep.RunFinished as error:
        return Raised(type(error), exact((error.run_id, error.result)))
    except keepstep.RunError as error:
        return Raised(type(error), error.run_id)
    except (keepstep.KeepstepError, SimulatedCrash) as error:
        return Raised(type(error))


def claimed(run: Any) -> tuple[Any, ...]:
    """A handle that was just given."""
    assert run.is_open
    return (run.id, run.epoch, run.deaths, run.workflow, run.tags, *where(run))


def where(run: Any) -> tuple[Any, ...]:
    """(step, next, label, state) of a handle."""
    return (run.step, run.next, run.label, run.state)


def head(one: keepstep.RunHead, names: Names) -> tuple[Any, ...]:
    """A line of a list of runs."""
    parent = None if one.parent is None else (one.parent.run_id, one.parent.step, one.parent.seq)
    holder = None if one.holder is None else (names[one.holder.owner], one.holder.stands)
    times = (_us(one.created), _us(one.changed), None if one.saved is None else _us(one.saved))
    counts = (one.incarnation, one.epoch, one.deaths, one.seq)
    tags = dict(one.tags)
    return (one.run_id, one.workflow, one.status, one.step, one.next, one.label, tags, parent, holder, times, counts)


def look(one: keepstep.Look, names: Names) -> tuple[Any, ...]:
    """A run with its state."""
    return (head(one, names), one.state, one.result, one.note)


def line(one: keepstep.CheckpointHead) -> tuple[Any, ...]:
    """A checkpoint without its state."""
    return (one.step, one.next, one.label, one.seq, one.epoch, _us(one.at), one.parent_seq)


def checkpoint(one: keepstep.Checkpoint | None) -> tuple[Any, ...] | None:
    """A checkpoint."""
    return None if one is None else (one.run_id, one.workflow, line(one), one.state)


def pages(call: Callable[..., keepstep.PageOf[Any]], limit: int, *args: Any, **named: Any) -> list[Any]:
    """A list that comes in pages, whole."""
    page = call(*args, limit=limit, **named)
    items = list(page.items)
    while page.next is not None:
        assert len(page.items) == limit
        page = call(*args, limit=limit, cursor=page.next, **named)
        items += page.items
    return items


Whole = dict[str, tuple[Kept, Log]]


def whole(store: keepstep.Store, names: Names) -> Whole:
    """Everything that a store holds."""
    return {run_id: (kept, _log(store, run_id, names)) for run_id, kept in sorted(picture(store).items())}


def _log(store: keepstep.Store, run_id: str, names: Names) -> Log:
    one = store.look(run_id)
    lines = store.history(run_id, newest_first=False, limit=1000).items
    return Log(
        created_us=_us(one.created),
        changed_us=_us(one.changed),
        epoch=one.epoch,
        seq=one.seq,
        owner=None if one.holder is None else names[one.holder.owner],
        deaths=one.deaths,
        parent_seq=None if one.parent is None else one.parent.seq,
        marks=[(each.seq, each.epoch, _us(each.at)) for each in lines],
    )


def _us(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)
