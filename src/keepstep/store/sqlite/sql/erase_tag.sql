DELETE FROM tags WHERE run = ?1 AND name = ?2
