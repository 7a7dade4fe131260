"""Runs in a PostgreSQL database: any number of processes, on any number of machines, share it."""

from keepstep.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
