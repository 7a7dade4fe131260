-- The format of the store in this schema; nothing when there is no store.
SELECT value FROM {schema}.meta WHERE name = 'format'
