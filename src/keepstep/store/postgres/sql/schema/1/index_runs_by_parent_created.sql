CREATE INDEX runs_by_parent_created ON {schema}.runs (parent, created_us, id) WHERE parent IS NOT NULL
