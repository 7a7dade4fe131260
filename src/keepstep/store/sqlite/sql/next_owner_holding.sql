-- The first owner after this one that holds runs, and its lease.
SELECT runs.owner, owners.until_us
FROM runs INDEXED BY runs_by_owner LEFT JOIN owners ON owners.id = runs.owner
WHERE runs.owner > ?1 ORDER BY runs.owner LIMIT 1
