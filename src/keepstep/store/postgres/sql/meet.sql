-- The same behind a pooler, where nothing may be left in a session.
SELECT current_setting('server_version_num')::int
