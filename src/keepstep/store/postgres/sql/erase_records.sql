DELETE FROM {schema}.records WHERE run = %(id)s
