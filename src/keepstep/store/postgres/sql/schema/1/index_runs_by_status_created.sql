CREATE INDEX runs_by_status_created ON {schema}.runs (status, created_us, id)
