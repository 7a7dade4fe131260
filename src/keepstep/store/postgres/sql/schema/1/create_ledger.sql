-- Key digest of an effect, gate, sleep or label → where it began and how it ended.
CREATE TABLE {schema}.ledger (
  run bytea NOT NULL,
  key bytea NOT NULL,
  began bigint NOT NULL,
  ended bigint NOT NULL,
  how text COLLATE "C" NOT NULL,
  PRIMARY KEY (run, key)
) WITH (fillfactor = 80)
