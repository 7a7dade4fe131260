-- How many ids lie in a range, up to a limit; reads the index of ids only.
SELECT count(*) FROM (SELECT 1 FROM runs WHERE id >= ?1 AND id < ?2 LIMIT ?3)
