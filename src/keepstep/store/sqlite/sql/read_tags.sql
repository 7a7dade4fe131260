SELECT name, value, created_us, changed_us FROM tags WHERE run = ?1
