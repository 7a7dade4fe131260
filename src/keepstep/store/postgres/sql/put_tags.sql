INSERT INTO {schema}.tags (run, name, value, created_us, changed_us)
SELECT * FROM unnest(
  %(runs)s::bytea[], %(names)s::bytea[], %(values)s::bytea[], %(created_us)s::bigint[], %(changed_us)s::bigint[]
)
ON CONFLICT (run, name) DO UPDATE SET
  value = excluded.value, created_us = excluded.created_us, changed_us = excluded.changed_us
