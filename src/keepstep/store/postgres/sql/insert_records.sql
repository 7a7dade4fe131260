INSERT INTO {schema}.records (run, seq, head, body)
SELECT * FROM unnest(%(runs)s::bytea[], %(seqs)s::bigint[], %(heads)s::bytea[], %(bodies)s::bytea[])
