-- In the order of their ids; whoever has locked one is not waited for.
SELECT id FROM {schema}.runs WHERE id = ANY(%(ids)s::bytea[]) ORDER BY id FOR UPDATE SKIP LOCKED
