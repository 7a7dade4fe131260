CREATE INDEX runs_by_workflow_changed ON runs (workflow, status, changed_us, id)
