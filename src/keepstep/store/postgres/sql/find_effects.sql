SELECT key, began, ended, how FROM {schema}.ledger
WHERE run = %(id)s AND key = ANY(%(keys)s::bytea[])
