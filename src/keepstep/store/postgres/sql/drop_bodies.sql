UPDATE {schema}.records SET body = NULL
WHERE run = %(id)s AND seq BETWEEN %(first)s AND %(last)s AND body IS NOT NULL
