SELECT key FROM runs WHERE id = ?1
