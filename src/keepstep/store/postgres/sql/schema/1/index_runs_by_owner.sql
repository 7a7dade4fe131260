CREATE INDEX runs_by_owner ON {schema}.runs (owner, changed_us, id) WHERE owner IS NOT NULL
