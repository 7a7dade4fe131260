INSERT INTO tags (run, name, value, id, created_us, changed_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (run, name) DO UPDATE SET
  value = excluded.value, created_us = excluded.created_us, changed_us = excluded.changed_us
