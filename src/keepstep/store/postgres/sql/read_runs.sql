-- The same for who only looks.
SELECT asked.id, runs.seq, runs.digest, runs.row, owners.until_us, tombstones.incarnation, tombstones.epoch, NULL, {now}
FROM unnest(%(ids)s::bytea[]) AS asked (id)
LEFT JOIN {schema}.runs ON runs.id = asked.id
LEFT JOIN {schema}.owners ON owners.id = runs.owner
LEFT JOIN {schema}.tombstones ON tombstones.run = asked.id
