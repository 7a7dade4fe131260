-- The logs. The key is (run key << 32 | seq); the head stands behind its digest, and before the body, so that
-- reading heads does not read bodies. A rowid table: without rowids, bodies of 1 KB would spill to overflow pages.
CREATE TABLE records (
  key INTEGER PRIMARY KEY,
  head BLOB NOT NULL,
  body BLOB
) STRICT
