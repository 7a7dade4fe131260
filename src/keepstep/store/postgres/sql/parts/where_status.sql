AND runs.status = ANY(%(statuses)s::text[])
