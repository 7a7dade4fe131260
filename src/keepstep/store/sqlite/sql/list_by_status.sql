-- Runs in one status, in order. Several statuses are merged by whoever asks.
SELECT {column}, runs.id, runs.key
FROM runs INDEXED BY runs_by_status_{order}
WHERE runs.status = :driver
  AND ({column}, runs.id) {past} (:us, :id)
  {filters}
ORDER BY {column} {direction}, runs.id {direction}
