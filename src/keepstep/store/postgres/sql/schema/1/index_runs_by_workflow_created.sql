CREATE INDEX runs_by_workflow_created ON {schema}.runs (workflow, status, created_us, id)
