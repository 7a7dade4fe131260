-- The tags of the runs' rows, to search by; with what a list is ordered by, so that a common tag needs no sorting.
CREATE TABLE {schema}.tags (
  run bytea NOT NULL,
  name bytea NOT NULL,
  value bytea NOT NULL,
  created_us bigint NOT NULL,
  changed_us bigint NOT NULL,
  PRIMARY KEY (run, name)
)
