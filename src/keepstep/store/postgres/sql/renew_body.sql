UPDATE {schema}.records SET body = %(body)s WHERE run = %(id)s AND seq = %(seq)s
