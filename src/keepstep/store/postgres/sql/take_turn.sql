-- Those who create or migrate one schema at the same time do it one after another.
SELECT pg_advisory_xact_lock(%(key)s)
