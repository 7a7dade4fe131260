SELECT id, seq, digest, row FROM {schema}.runs WHERE owner = %(owner)s
