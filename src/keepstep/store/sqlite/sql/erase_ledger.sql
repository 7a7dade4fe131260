DELETE FROM ledger WHERE run = ?1
