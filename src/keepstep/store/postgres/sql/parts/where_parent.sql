AND runs.parent = %(parent)s
