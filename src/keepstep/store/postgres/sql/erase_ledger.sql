DELETE FROM {schema}.ledger WHERE run = %(id)s
