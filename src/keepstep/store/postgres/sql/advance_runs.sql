-- Runs that are locked, and of which it is known that their logs end where they should.
UPDATE {schema}.runs SET
  seq = new.seq, digest = new.digest, row = new.row, status = new.status, changed_us = new.changed_us,
  due_us = new.due_us, asking_us = new.asking_us, owner = new.owner
FROM unnest(
  %(ids)s::bytea[], %(seqs)s::bigint[], %(digests)s::bytea[], %(rows)s::bytea[], %(statuses)s::text[],
  %(changed_us)s::bigint[], %(due_us)s::bigint[], %(asking_us)s::bigint[], %(owners)s::bytea[]
) AS new (id, seq, digest, row, status, changed_us, due_us, asking_us, owner)
WHERE runs.id = new.id
