-- The hot path: logs move on if they still end where their writers think, and no column changes that lists are searched
-- by. All in one statement, which is a transaction: runs, records and ledgers.
WITH locked AS MATERIALIZED (
  SELECT id FROM {schema}.runs WHERE id = ANY(%(ids)s::bytea[]) ORDER BY id FOR UPDATE SKIP LOCKED
), advanced AS (
  UPDATE {schema}.runs SET seq = asked.seq, digest = asked.digest, row = asked.row
  FROM unnest(
    %(ids)s::bytea[], %(after_seqs)s::bigint[], %(after_digests)s::bytea[],
    %(seqs)s::bigint[], %(digests)s::bytea[], %(rows)s::bytea[]
  ) AS asked (id, after_seq, after_digest, seq, digest, row)
  WHERE runs.id = asked.id AND runs.seq = asked.after_seq AND runs.digest = asked.after_digest
    AND runs.id IN (SELECT id FROM locked)
  RETURNING runs.id
), wrote AS (
  INSERT INTO {schema}.records (run, seq, head, body)
  SELECT new.* FROM unnest(
    %(record_runs)s::bytea[], %(record_seqs)s::bigint[], %(heads)s::bytea[], %(bodies)s::bytea[]
  ) AS new (run, seq, head, body)
  WHERE new.run IN (SELECT id FROM advanced)
), noted AS (
  INSERT INTO {schema}.ledger (run, key, began, ended, how)
  SELECT new.* FROM unnest(
    %(effect_runs)s::bytea[], %(effect_keys)s::bytea[], %(began)s::bigint[], %(ended)s::bigint[], %(how)s::text[]
  ) AS new (run, key, began, ended, how)
  WHERE new.run IN (SELECT id FROM advanced)
  ON CONFLICT (run, key) DO UPDATE SET began = excluded.began, ended = excluded.ended, how = excluded.how
), beaten AS (
  SELECT nextval('{schema}.pulse')
  FROM (SELECT pg_advisory_xact_lock_shared(%(pulse)s) WHERE EXISTS (SELECT FROM advanced)) AS held
)
SELECT advanced.id, {now} FROM advanced, beaten
