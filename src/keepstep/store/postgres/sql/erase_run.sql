DELETE FROM {schema}.runs WHERE id = %(id)s
