CREATE INDEX runs_by_created ON {schema}.runs (created_us, id)
