-- The same, where columns that lists are searched by change as well. The others never do. Tells whether there are tags.
UPDATE runs
SET seq = ?1, digest = ?2, row = ?3, status = ?7, changed_us = ?8, due_us = ?9, asking_us = ?10, owner = ?11
WHERE id = ?4 AND seq = ?5 AND digest = ?6
RETURNING key, EXISTS (SELECT 1 FROM tags WHERE run = runs.key)
