-- Owners after this one, and whether a run names them.
SELECT id, until_us, EXISTS (SELECT 1 FROM runs WHERE runs.owner = owners.id)
FROM owners WHERE id > ?1 ORDER BY id LIMIT ?2
