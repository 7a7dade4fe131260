-- What a deleted run leaves, until its id lives again.
CREATE TABLE {schema}.tombstones (
  run bytea NOT NULL PRIMARY KEY,
  incarnation bigint NOT NULL,
  epoch bigint NOT NULL
)
