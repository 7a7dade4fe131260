SELECT key, head, body FROM records
WHERE key BETWEEN ?1 AND ?2 ORDER BY key {direction} LIMIT ?3
