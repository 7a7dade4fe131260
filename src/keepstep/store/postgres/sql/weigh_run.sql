SELECT (SELECT count(*) FROM {schema}.runs WHERE id = %(id)s), count(*),
  coalesce(sum(octet_length(head) - 16), 0)::bigint, coalesce(sum(octet_length(body)), 0)::bigint, 0
FROM {schema}.records WHERE run = %(id)s
