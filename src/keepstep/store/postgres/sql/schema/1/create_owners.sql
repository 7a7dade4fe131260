-- Who may hold runs, and until when.
CREATE TABLE {schema}.owners (
  id bytea NOT NULL PRIMARY KEY,
  until_us bigint NOT NULL,
  since_us bigint NOT NULL,
  host text NOT NULL,
  pid bigint NOT NULL
) WITH (fillfactor = 50)
