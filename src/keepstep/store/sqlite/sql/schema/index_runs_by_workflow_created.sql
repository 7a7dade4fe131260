CREATE INDEX runs_by_workflow_created ON runs (workflow, status, created_us, id)
