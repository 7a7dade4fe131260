DELETE FROM tags WHERE run = ?1
