CREATE INDEX runs_by_changed ON runs (changed_us, id)
