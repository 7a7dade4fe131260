-- The whole store: reads every head, and of large bodies only the sizes.
SELECT (SELECT count(*) FROM {schema}.runs), count(*),
  coalesce(sum(octet_length(head) - 16), 0)::bigint, coalesce(sum(octet_length(body)), 0)::bigint,
  (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
   WHERE relnamespace = to_regnamespace(%(schema)s) AND relkind = 'r')
FROM {schema}.records
