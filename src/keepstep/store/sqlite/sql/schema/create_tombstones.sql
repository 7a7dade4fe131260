-- What a deleted run leaves, until its id lives again.
CREATE TABLE tombstones (
  id TEXT NOT NULL PRIMARY KEY,
  incarnation INTEGER NOT NULL,
  epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID
