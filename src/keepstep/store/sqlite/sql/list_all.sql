-- Runs of every workflow and status, in the order of their creation.
SELECT created_us, runs.id, runs.key
FROM runs INDEXED BY runs_by_created
WHERE (created_us, runs.id) {past} (:us, :id)
  {filters}
ORDER BY created_us {direction}, runs.id {direction}
