CREATE INDEX runs_by_due ON runs (workflow, due_us) WHERE due_us IS NOT NULL
