-- Fails when one of them was created a moment ago; then the whole batch is decided again.
INSERT INTO {schema}.runs
  (id, seq, digest, row, status, changed_us, due_us, asking_us, owner, workflow, created_us, parent)
SELECT * FROM unnest(
  %(ids)s::bytea[], %(seqs)s::bigint[], %(digests)s::bytea[], %(rows)s::bytea[], %(statuses)s::text[],
  %(changed_us)s::bigint[], %(due_us)s::bigint[], %(asking_us)s::bigint[], %(owners)s::bytea[],
  %(workflows)s::bytea[], %(created_us)s::bigint[], %(parents)s::bytea[]
)
