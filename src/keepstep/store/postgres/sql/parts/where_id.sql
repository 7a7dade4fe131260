AND runs.id >= %(from_id)s
