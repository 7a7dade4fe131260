CREATE INDEX runs_by_status_changed ON {schema}.runs (status, changed_us, id)
