SELECT seq, head, NULL FROM {schema}.records
WHERE run = %(id)s AND seq > %(after)s AND seq <= %(until)s ORDER BY seq {direction} LIMIT %(most)s
