INSERT INTO {schema}.ledger (run, key, began, ended, how)
SELECT * FROM unnest(
  %(runs)s::bytea[], %(keys)s::bytea[], %(began)s::bigint[], %(ended)s::bigint[], %(how)s::text[]
)
ON CONFLICT (run, key) DO UPDATE SET began = excluded.began, ended = excluded.ended, how = excluded.how
