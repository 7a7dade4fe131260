INSERT INTO {schema}.owners (id, until_us, since_us, host, pid)
VALUES (%(owner)s, {now} + %(lease_us)s, {now}, %(host)s, %(pid)s)
ON CONFLICT (id) DO UPDATE SET until_us = excluded.until_us, host = excluded.host, pid = excluded.pid
