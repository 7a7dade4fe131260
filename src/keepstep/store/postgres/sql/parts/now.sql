coalesce(%(now_us)s::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)
