-- Runs of one workflow in one status, in order.
SELECT {column}, runs.id, runs.key
FROM runs INDEXED BY runs_by_workflow_{order}
WHERE runs.workflow = :driver_workflow AND runs.status = :driver
  AND ({column}, runs.id) {past} (:us, :id)
  {filters}
ORDER BY {column} {direction}, runs.id {direction}
