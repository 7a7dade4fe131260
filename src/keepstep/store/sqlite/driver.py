"""The part of apsw that is used here, with types: a value of a row is what its column holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

import apsw

Values = tuple[Any, ...]


class Cursor(Protocol):
    """Runs statements; each is prepared once and kept."""

    @property
    def connection(self) -> Connection: ...

    @property
    def get(self) -> Any:
        """The only value of the only row; None when there is none."""
        ...

    def execute(self, statement: str, values: Any = None, /) -> Cursor: ...

    def executemany(self, statement: str, values: Iterable[Any], /) -> Cursor: ...

    def fetchone(self) -> Values | None: ...

    def fetchall(self) -> list[Values]: ...

    def __iter__(self) -> Iterator[Values]: ...

    def close(self, force: bool = False) -> None: ...  # noqa: FBT001, FBT002 - as apsw has it


class Backup(Protocol):
    """A copy under way."""

    def step(self, pages: int, /) -> bool: ...


class Connection(Protocol):
    """An open database."""

    in_transaction: bool
    system_errno: int

    def cursor(self) -> Cursor: ...

    def execute(self, statement: str, values: Any = None, /) -> Cursor: ...

    def close(self, force: bool = False) -> None: ...  # noqa: FBT001, FBT002 - as apsw has it

    def set_busy_timeout(self, milliseconds: int, /) -> None: ...

    def readonly(self, name: str, /) -> bool: ...

    def backup(self, name: str, source: Connection, source_name: str, /) -> AbstractContextManager[Backup]: ...


def connect(path: str, flags: int, vfs: str | None) -> Connection:
    """Open a database."""
    return cast("Connection", apsw.Connection(path, flags=flags, vfs=vfs))
