-- What a run's ledger has under one key.
SELECT ledger.key, ledger.began, ledger.ended, ledger.how
FROM runs JOIN ledger ON ledger.run = runs.key
WHERE runs.id = ?1 AND ledger.key = ?2
