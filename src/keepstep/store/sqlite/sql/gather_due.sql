-- Waiting runs of one workflow whose time has come.
SELECT {column}, runs.id, runs.key
FROM runs INDEXED BY runs_by_due
WHERE runs.workflow = :driver AND runs.due_us <= :now_us
  {filters}
LIMIT :most
