SELECT key, began, ended, how FROM {schema}.ledger WHERE run = %(id)s
