INSERT INTO owners (id, until_us, since_us, host, pid) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (id) DO UPDATE SET until_us = excluded.until_us, host = excluded.host, pid = excluded.pid
