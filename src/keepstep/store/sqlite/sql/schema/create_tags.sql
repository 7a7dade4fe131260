-- The tags of the runs' rows, to search by; with what a list is ordered by, so that a common tag needs no sorting.
CREATE TABLE tags (
  run INTEGER NOT NULL,
  name TEXT NOT NULL,
  value ANY NOT NULL,
  id TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  changed_us INTEGER NOT NULL,
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID
