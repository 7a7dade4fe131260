"""A store that one process makes while others look what the file is."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from keepstep.store.sqlite.connect import connect_writer
from keepstep.store.sqlite.schema import is_store, prepare


class Watched:
    """A connection; something happens after its n-th statement."""

    def __init__(self, connection: Any, after: int, then: Any) -> None:
        self._connection = connection
        self._left = after
        self._then = then

    def execute(self, statement: str, values: Any = None) -> Any:
        """Do as asked; then it may be time."""
        found = self._connection.execute(statement, values).get
        self._left -= 1
        if self._left == 0:
            self._then()
        return type("Found", (), {"get": found})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize("after", range(1, 6))
def test_a_file_that_becomes_a_store_while_it_is_looked_at_is_no_stranger(tmp_path, after):
    path = str(tmp_path / "runs.db")
    apsw.Connection(path).execute("PRAGMA journal_mode = WAL")  # as far as its maker had come
    maker, other = connect_writer(path, None), connect_writer(path, None)
    watched: Any = Watched(other, after, lambda: prepare(maker, path))

    found = is_store(watched, path, read_only=False)

    assert not found or is_store(maker, path, read_only=False)
    prepare(maker, path)
    assert is_store(other, path, read_only=False)
    for connection in (maker, other):
        connection.close()
