DELETE FROM {schema}.tags WHERE run = %(id)s
