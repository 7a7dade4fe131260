SELECT id, seq, digest, row FROM runs WHERE owner = ?1
