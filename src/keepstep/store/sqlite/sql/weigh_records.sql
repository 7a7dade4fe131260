-- The whole store: reads every head, and no body.
SELECT count(*), coalesce(sum(length(head) - 16), 0), coalesce(sum(length(body)), 0) FROM records
