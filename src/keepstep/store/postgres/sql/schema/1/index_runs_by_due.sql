CREATE INDEX runs_by_due ON {schema}.runs (due_us) WHERE due_us IS NOT NULL
