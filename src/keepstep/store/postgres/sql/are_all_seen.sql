-- Whether nobody is about to commit what a number was drawn for.
SELECT pg_try_advisory_xact_lock(%(pulse)s)
