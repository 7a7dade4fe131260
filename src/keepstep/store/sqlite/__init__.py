"""Runs in one SQLite file: many threads and processes of one machine share it."""

from keepstep.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
