CREATE INDEX tags_by_value_created ON {schema}.tags (name, value, created_us, run)
