CREATE INDEX tags_by_value_changed ON {schema}.tags (name, value, changed_us, run)
