CREATE INDEX runs_by_status_changed ON runs (status, changed_us, id)
