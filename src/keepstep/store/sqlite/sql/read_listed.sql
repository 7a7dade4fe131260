-- The same, by key, for a list.
SELECT runs.id, runs.seq, runs.digest, runs.row, owners.until_us
FROM runs LEFT JOIN owners ON owners.id = runs.owner
WHERE runs.key = ?1
