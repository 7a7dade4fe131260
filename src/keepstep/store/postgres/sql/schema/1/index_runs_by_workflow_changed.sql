CREATE INDEX runs_by_workflow_changed ON {schema}.runs (workflow, status, changed_us, id)
