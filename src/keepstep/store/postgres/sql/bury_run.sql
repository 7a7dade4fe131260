INSERT INTO {schema}.tombstones (run, incarnation, epoch) VALUES (%(id)s, %(incarnation)s, %(epoch)s)
ON CONFLICT (run) DO UPDATE SET incarnation = excluded.incarnation, epoch = excluded.epoch
