-- Asked of every new connection. What is committed has to be durable, whatever is usual at this server.
SELECT current_setting('server_version_num')::int,
  set_config(
    'synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
    false
  )
