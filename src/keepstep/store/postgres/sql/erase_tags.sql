-- Of runs that moved: the tags that they have no more.
DELETE FROM {schema}.tags
WHERE run = ANY(%(ids)s::bytea[]) AND NOT EXISTS (
  SELECT FROM unnest(%(runs)s::bytea[], %(names)s::bytea[]) AS kept (run, name)
  WHERE kept.run = tags.run AND kept.name = tags.name
)
