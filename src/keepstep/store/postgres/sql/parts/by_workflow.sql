-- Runs of some workflows in some statuses.
    SELECT one.us, one.id, one.seq FROM
    unnest(%(workflows)s::bytea[]) AS flow (name), unnest(%(statuses)s::text[]) AS want (status), LATERAL (
      SELECT runs.{column} AS us, runs.id, runs.seq FROM {schema}.runs
      WHERE runs.workflow = flow.name AND runs.status = want.status AND (runs.{column}, runs.id) {past} (%(us)s, %(id)s)
        {filters}
      ORDER BY runs.{column} {direction}, runs.id {direction} LIMIT %(most)s
    ) AS one
