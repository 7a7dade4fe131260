-- Who may hold runs, and until when.
CREATE TABLE owners (
  id TEXT NOT NULL PRIMARY KEY,
  until_us INTEGER NOT NULL,
  since_us INTEGER NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL
) STRICT, WITHOUT ROWID
