CREATE INDEX runs_by_parent_changed ON {schema}.runs (parent, changed_us, id) WHERE parent IS NOT NULL
