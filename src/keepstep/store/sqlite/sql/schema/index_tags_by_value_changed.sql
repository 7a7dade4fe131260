CREATE INDEX tags_by_value_changed ON tags (name, value, changed_us, id)
