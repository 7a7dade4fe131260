-- One row per run. Every save changes seq, digest and row, and none of them is indexed.
CREATE TABLE runs (
  key INTEGER PRIMARY KEY CHECK (key BETWEEN 1 AND 2147483647),
  id TEXT NOT NULL UNIQUE,
  workflow TEXT NOT NULL,
  status TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  changed_us INTEGER NOT NULL,
  due_us INTEGER,
  asking_us INTEGER,
  owner TEXT,
  parent TEXT,
  seq INTEGER NOT NULL,
  digest BLOB NOT NULL,
  row BLOB NOT NULL
) STRICT
