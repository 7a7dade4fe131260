-- For one transaction: what is set once per connection where there is no pooler, and whether the disk is waited for.
SELECT set_config('idle_in_transaction_session_timeout', %(idle_ms)s, true),
  set_config('lock_timeout', %(lock_ms)s, true),
  set_config(
    'synchronous_commit',
    CASE
      WHEN NOT %(urgent)s THEN 'off'
      WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
      ELSE current_setting('synchronous_commit')
    END,
    true
  )
