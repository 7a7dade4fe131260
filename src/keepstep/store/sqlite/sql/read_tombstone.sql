SELECT incarnation, epoch FROM tombstones WHERE id = ?1
