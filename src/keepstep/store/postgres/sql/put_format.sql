INSERT INTO {schema}.meta (name, value) VALUES ('format', %(format)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
