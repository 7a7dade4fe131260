"""keepstep.copy: moving runs from one store into another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from keepstep.api.opening import Place
from keepstep.api.opening import open as open_store
from keepstep.api.store import Store
from keepstep.engine import copying
from keepstep.engine.context import Engine
from keepstep.engine.looks import CopiedRun, CopyReport
from keepstep.engine.rows import check_id
from keepstep.errors import BadInput, shown
from keepstep.runtime.durations import Duration, seconds
from keepstep.runtime.inline import drive


def copy(
    source: Store | Place,
    target: Store | Place,
    *,
    runs: Sequence[str] | None = None,
    wait: Duration = 0,
    progress: Callable[[CopiedRun], None] | None = None,
) -> CopyReport:
    """Move runs from one store into another, of any kind, their logs unchanged: `copy("runs.db", "postgresql://...")`.

    A run that somebody holds stays; with `wait=` it is tried again for so long. In the source every run gets a note of
    where it went, and one that had not ended is cancelled there, so that nobody goes on with it in two places. Cut off,
    the copy goes on when it is called again. What was copied is read again and checked. `progress` is told of each run.
    """
    wait_seconds = seconds(wait, "wait")
    if isinstance(runs, str) or not (runs is None or isinstance(runs, Sequence)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"runs= is {shown(runs)}; give a list of ids.")
    if progress is not None and not callable(progress):  # pyright: ignore[reportUnnecessaryComparison]
        raise BadInput(f"progress= is {shown(progress)}; give a function, which is told of each run.")
    with _opened(source) as here, _opened(target) as there:
        _check(here, there)
        source_engine, target_engine = _engine(here), _engine(there)
        for one in runs or ():
            check_id(source_engine.limits, one)
        return drive(copying.copy(source_engine, target_engine, runs, wait_seconds, progress))


def _opened(place: Any) -> AbstractContextManager[Store]:
    return nullcontext(place) if isinstance(place, Store) else open_store(place)


def _engine(store: Store) -> Engine:
    return store._session.engine  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # they are of one folder


def _check(here: Store, there: Store) -> None:
    if here.url == there.url:
        raise BadInput(f"Source and target are the same store, {here.url}.")
    for store in (here, there):
        if store.read_only:
            raise BadInput(
                f"{store.url} was opened read-only, and copy() writes to both: the source is told what went."
            )
