CREATE INDEX runs_by_status_created ON runs (status, created_us, id)
