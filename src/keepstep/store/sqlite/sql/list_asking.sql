-- Runs with an open gate, by when they began to ask. They are few, so whatever else is asked is looked up run by run.
SELECT asking_us, runs.id, runs.key
FROM runs INDEXED BY runs_by_asking
WHERE asking_us IS NOT NULL
  AND (asking_us, runs.id) {past} (:us, :id)
  {filters}
ORDER BY asking_us {direction}, runs.id {direction}
