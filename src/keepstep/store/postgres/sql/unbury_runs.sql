DELETE FROM {schema}.tombstones WHERE run = ANY(%(ids)s::bytea[])
