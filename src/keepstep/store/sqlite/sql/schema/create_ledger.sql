-- Key digest of an effect, gate, sleep or label → where it began and how it ended.
CREATE TABLE ledger (
  run INTEGER NOT NULL,
  key BLOB NOT NULL,
  began INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  how TEXT NOT NULL,
  PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID
