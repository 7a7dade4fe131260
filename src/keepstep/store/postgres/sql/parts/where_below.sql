AND runs.id < %(below_id)s
