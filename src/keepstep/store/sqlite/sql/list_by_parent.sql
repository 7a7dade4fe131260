-- Forks of one run, in order.
SELECT {column}, runs.id, runs.key
FROM runs INDEXED BY runs_by_parent_{order}
WHERE runs.parent = :driver
  AND ({column}, runs.id) {past} (:us, :id)
  {filters}
ORDER BY {column} {direction}, runs.id {direction}
