CREATE INDEX runs_by_parent_created ON runs (parent, created_us, id) WHERE parent IS NOT NULL
