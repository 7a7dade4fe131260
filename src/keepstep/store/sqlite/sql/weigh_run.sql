SELECT count(*), coalesce(sum(length(head) - 16), 0), coalesce(sum(length(body)), 0)
FROM records WHERE key BETWEEN ?1 AND ?2
