-- How common a tag is, up to a limit.
SELECT count(*) FROM (SELECT 1 FROM tags WHERE name = ?1 AND value = ?2 LIMIT ?3)
