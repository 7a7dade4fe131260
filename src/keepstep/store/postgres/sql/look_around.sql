-- Whether there is a schema, a store in it, and who we are.
SELECT to_regnamespace(%(schema)s) IS NOT NULL, to_regclass(%(meta)s) IS NOT NULL, current_user::text,
  current_database()::text
