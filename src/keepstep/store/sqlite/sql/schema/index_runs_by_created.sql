CREATE INDEX runs_by_created ON runs (created_us, id)
