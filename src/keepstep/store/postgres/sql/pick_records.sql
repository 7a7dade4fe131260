SELECT seq, head, body FROM {schema}.records WHERE run = %(id)s AND seq = ANY(%(seqs)s::bigint[])
