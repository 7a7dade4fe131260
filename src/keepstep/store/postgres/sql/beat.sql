-- A number is drawn while this lock is held, which ends when what was written can be seen: see `watching`.
SELECT nextval('{schema}.pulse') FROM (SELECT pg_advisory_xact_lock_shared(%(pulse)s)) AS held
