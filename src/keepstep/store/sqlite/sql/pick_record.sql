-- One record of a run.
SELECT records.key, records.head, records.body
FROM runs JOIN records ON records.key = (runs.key << 32 | ?2)
WHERE runs.id = ?1
