CREATE INDEX runs_by_owner ON runs (owner, changed_us, id) WHERE owner IS NOT NULL
