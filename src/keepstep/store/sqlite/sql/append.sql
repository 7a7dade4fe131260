-- The hot path: the log moves on if it still ends where the writer thinks it ends.
UPDATE runs SET seq = ?1, digest = ?2, row = ?3
WHERE id = ?4 AND seq = ?5 AND digest = ?6
RETURNING key
