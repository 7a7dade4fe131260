"""The store in a directory: one append-only file per run, for reading with `less` and `jq`.

    <path>/keepstep.json     says that this is a store, and of which format
    <path>/lock              flocked: exclusively by who writes, shared by who reads
    <path>/changes           a number that every commit counts up
    <path>/runs/<name>.jsonl one run: a commit is one line (see `lines`, `names`)
    <path>/owners/<owner>    flocked by an open store for as long as it lives
    <path>/leases/<name>.json until when that owner counts as alive

What is found wrong at the end of a file, with nothing whole behind it, is a commit that never ended: it is not read,
and cut before the next one. Anything else that is wrong is damage, and is never cut.
"""

from keepstep.store.directory.store import DirectoryStore

__all__ = ["DirectoryStore"]
