"""One connection, used by one thread at a time, made when it is first needed."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import apsw

from keepstep.store.sqlite.driver import Connection, Cursor


class Line:
    """A connection and the lock that guards it. Whoever holds `mutex` may use `cursor`, `drop` and `forget`."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self.mutex = threading.Lock()
        self.made = 0
        """How often it has connected."""
        self._connect = connect
        self._connection: Connection | None = None
        self._cursor: Cursor | None = None
        self._pragmas: dict[str, object] = {}
        """What was set on this connection."""

    def cursor(self) -> Cursor:
        """The cursor to use; it connects when there is none."""
        if self._cursor is None:
            self._connection = self._connect()
            self.made += 1
            self._cursor = self._connection.cursor()
            self._pragmas = {}
        return self._cursor

    def set(self, pragma: str, value: object) -> None:
        """Set a pragma, unless it is set so. It is forgotten first, so that after an interruption it is set again."""
        if self._pragmas.get(pragma) != value:
            cursor = self.cursor()
            self._pragmas.pop(pragma, None)
            cursor.execute(f"PRAGMA {pragma} = {value}")
            self._pragmas[pragma] = value

    def give_up(self) -> None:
        """Undo the transaction that is open, if any; without a connection that can do it, do without the connection."""
        if self._connection is None or not self._connection.in_transaction:
            return
        assert self._cursor is not None
        try:
            self._cursor.execute("ROLLBACK")
        except apsw.Error:
            self.drop()

    def system_errno(self) -> int:
        """What the operating system said last, on this connection."""
        return 0 if self._connection is None else self._connection.system_errno

    def drop(self) -> None:
        """Close the connection; the next use makes another."""
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            connection.close(force=True)

    def forget(self) -> None:
        """In a forked child: keep the parent's connection from ever being closed here, which would harm the parent."""
        self.mutex = threading.Lock()
        if self._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._cursor))
        self._connection = self._cursor = None
