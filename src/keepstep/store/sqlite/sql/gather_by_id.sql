-- Runs whose ids lie in a range; for few of them, whoever asks puts them in order.
SELECT {column}, runs.id, runs.key
FROM runs INDEXED BY sqlite_autoindex_runs_1
WHERE runs.id >= :from_id AND runs.id < :below_id
  {filters}
LIMIT :most
