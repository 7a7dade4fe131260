DELETE FROM runs WHERE key = ?1
