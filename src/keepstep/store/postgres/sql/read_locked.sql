-- Runs as they are now that they are locked. One that is not there yet is locked by its name: a creator who waited for
-- another one's transaction would make a whole batch wait.
SELECT asked.id, runs.seq, runs.digest, runs.row, owners.until_us, tombstones.incarnation, tombstones.epoch,
  CASE WHEN runs.id IS NULL THEN pg_try_advisory_xact_lock(asked.key) END, {now}
FROM unnest(%(ids)s::bytea[], %(keys)s::bigint[]) AS asked (id, key)
LEFT JOIN {schema}.runs ON runs.id = asked.id
LEFT JOIN {schema}.owners ON owners.id = runs.owner
LEFT JOIN {schema}.tombstones ON tombstones.run = asked.id
