-- One row per run. Every save changes seq, digest and row, and none of them is indexed: with the room that is left on
-- each page, the row is then replaced on its page and no index is touched. Texts are UTF-8 bytes, which hold any text,
-- are ordered as Python orders it, and depend on no locale.
CREATE TABLE {schema}.runs (
  id bytea NOT NULL PRIMARY KEY,
  seq bigint NOT NULL,
  created_us bigint NOT NULL,
  changed_us bigint NOT NULL,
  due_us bigint,
  asking_us bigint,
  status text COLLATE "C" NOT NULL,
  workflow bytea NOT NULL,
  owner bytea,
  parent bytea,
  digest bytea NOT NULL,
  row bytea NOT NULL
) WITH (fillfactor = 60)
