-- The first workflow after this one that has runs waiting for a time.
SELECT workflow FROM runs INDEXED BY runs_by_due
WHERE due_us IS NOT NULL AND workflow > ?1 ORDER BY workflow LIMIT 1
