INSERT INTO ledger (run, key, began, ended, how) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (run, key) DO UPDATE SET began = excluded.began, ended = excluded.ended, how = excluded.how
