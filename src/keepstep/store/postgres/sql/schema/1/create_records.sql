-- The logs. The head stands behind its digest, and before the body.
CREATE TABLE {schema}.records (
  run bytea NOT NULL,
  seq bigint NOT NULL,
  head bytea NOT NULL,
  body bytea,
  PRIMARY KEY (run, seq)
)
