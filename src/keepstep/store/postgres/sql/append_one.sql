-- The same for one run, one record and no ledger, which most saves are: without arrays it takes a third less.
WITH locked AS MATERIALIZED (
  SELECT id FROM {schema}.runs WHERE id = %(id)s FOR UPDATE SKIP LOCKED
), advanced AS (
  UPDATE {schema}.runs SET seq = %(seq)s, digest = %(digest)s, row = %(row)s
  WHERE id = (SELECT id FROM locked) AND seq = %(after_seq)s AND digest = %(after_digest)s
  RETURNING id
), wrote AS (
  INSERT INTO {schema}.records (run, seq, head, body)
  SELECT id, %(seq)s::bigint, %(head)s::bytea, %(body)s::bytea FROM advanced
), beaten AS (
  SELECT nextval('{schema}.pulse')
  FROM (SELECT pg_advisory_xact_lock_shared(%(pulse)s) WHERE EXISTS (SELECT FROM advanced)) AS held
)
SELECT advanced.id, {now} FROM advanced, beaten
