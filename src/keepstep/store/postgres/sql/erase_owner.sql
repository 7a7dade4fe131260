DELETE FROM {schema}.owners WHERE id = %(owner)s
