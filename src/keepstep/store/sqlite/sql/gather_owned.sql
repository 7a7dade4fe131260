-- Runs of one owner.
SELECT {column}, runs.id, runs.key
FROM runs INDEXED BY runs_by_owner
WHERE runs.owner = :driver
  {filters}
LIMIT :most
