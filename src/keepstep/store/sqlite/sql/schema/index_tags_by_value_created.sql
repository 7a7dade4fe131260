CREATE INDEX tags_by_value_created ON tags (name, value, created_us, id)
