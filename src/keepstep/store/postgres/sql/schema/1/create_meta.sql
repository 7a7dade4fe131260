-- What the schema says about itself.
CREATE TABLE {schema}.meta (
  name text NOT NULL PRIMARY KEY,
  value text NOT NULL
)
