SELECT key, began, ended, how FROM ledger WHERE run = ?1 AND key = ?2
