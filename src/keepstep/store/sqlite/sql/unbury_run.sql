DELETE FROM tombstones WHERE id = ?1
