-- Runs of every workflow and status, in order.
SELECT {column}, runs.id, runs.key
FROM runs INDEXED BY runs_by_{order}
WHERE ({column}, runs.id) {past} (:us, :id)
  {filters}
ORDER BY {column} {direction}, runs.id {direction}
