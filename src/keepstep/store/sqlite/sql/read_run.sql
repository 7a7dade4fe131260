-- A run's row, and its holder's lease.
SELECT runs.key, runs.seq, runs.digest, runs.row, owners.until_us
FROM runs LEFT JOIN owners ON owners.id = runs.owner
WHERE runs.id = ?1
