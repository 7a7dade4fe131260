AND runs.workflow = ANY(%(workflows)s::bytea[])
